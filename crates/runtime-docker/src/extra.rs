//! More options of the Engine, by the names that docker-py gives them (`docker_runtime_kwargs`).
//!
//! Only those are taken that cannot open a wall. One that could is refused with the setting that
//! does it in the open, where `inspect` shows it.

use bollard::models::{ContainerCreateBody, HostConfig};
use serde_json::{Map, Value};

/// Why an option is not passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtraError {
    #[error("the Docker option `{name}` is not taken: {reason}")]
    Refused { name: String, reason: &'static str },
    #[error("the Docker option `{name}` must be {wanted}")]
    Value { name: String, wanted: &'static str },
}

/// Names that would open a wall, and what to do instead.
const REFUSED: [(&str, &str); 20] = [
    ("privileged", "it takes all walls away"),
    ("cap_add", "list capabilities in the relaxed settings"),
    ("cap_drop", "all are dropped already"),
    ("security_opt", "the filter of system calls is ours"),
    ("devices", "a sandbox has no devices of the machine"),
    (
        "device_requests",
        "ask for graphics processors by their own setting",
    ),
    (
        "device_cgroup_rules",
        "a sandbox has no devices of the machine",
    ),
    ("pid_mode", "processes of the machine stay out of sight"),
    ("ipc_mode", "memory of the machine stays out of sight"),
    ("uts_mode", "the machine's name is not the sandbox's"),
    ("userns_mode", "users of the machine are not the sandbox's"),
    (
        "cgroupns",
        "control groups of the machine stay out of sight",
    ),
    ("network_mode", "choose the network by its own setting"),
    ("network", "choose the network by its own setting"),
    ("volumes", "list volumes by their own setting"),
    ("mounts", "list volumes by their own setting"),
    ("volumes_from", "list volumes by their own setting"),
    ("user", "choose the user by its own setting"),
    (
        "read_only",
        "choose a writable root in the relaxed settings",
    ),
    (
        "oom_kill_disable",
        "without it the whole machine can stand still",
    ),
];

/// Adds options to what is asked of the Engine.
pub(crate) fn apply(
    extra: &Map<String, Value>,
    body: &mut ContainerCreateBody,
) -> Result<(), ExtraError> {
    for (name, value) in extra {
        apply_one(name, value, body)?;
    }
    Ok(())
}

/// The number of bytes that an option asks for, where it does.
pub(crate) fn bytes(extra: &Map<String, Value>, name: &str) -> Option<u64> {
    u64::try_from(size(extra.get(name)?)?).ok()
}

fn apply_one(name: &str, value: &Value, body: &mut ContainerCreateBody) -> Result<(), ExtraError> {
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        let name = name.to_owned();
        return Err(ExtraError::Refused { name, reason });
    }
    match name {
        "hostname" => return set(name, text(value), &mut body.hostname, "a text"),
        "domainname" => return set(name, text(value), &mut body.domainname, "a text"),
        _ => {}
    }
    let host: &mut HostConfig = body.host_config.get_or_insert_default();
    match name {
        "mem_limit" => {
            // Without swap, as by default.
            host.memory_swap = size(value);
            set(name, size(value), &mut host.memory, "a size such as `2g`")
        }
        "mem_reservation" => set(
            name,
            size(value),
            &mut host.memory_reservation,
            "a size such as `2g`",
        ),
        "shm_size" => set(
            name,
            size(value),
            &mut host.shm_size,
            "a size such as `64m`",
        ),
        "cpu_quota" | "cpu_period" => {
            // The Engine takes either these two or one number.
            host.nano_cpus = None;
            let field = match name {
                "cpu_quota" => &mut host.cpu_quota,
                _ => &mut host.cpu_period,
            };
            set(name, value.as_i64(), field, "a number of microseconds")
        }
        "cpu_shares" => set(name, value.as_i64(), &mut host.cpu_shares, "a number"),
        "nano_cpus" => set(name, value.as_i64(), &mut host.nano_cpus, "a number"),
        "cpuset_cpus" => set(name, text(value), &mut host.cpuset_cpus, "a text"),
        "pids_limit" => {
            let positive = value.as_i64().filter(|limit| *limit > 0);
            set(name, positive, &mut host.pids_limit, "a number above 0")
        }
        "runtime" => set(name, text(value), &mut host.runtime, "a text"),
        "dns" => set(name, texts(value), &mut host.dns, "a list of texts"),
        "dns_search" => set(name, texts(value), &mut host.dns_search, "a list of texts"),
        "dns_opt" => set(name, texts(value), &mut host.dns_options, "a list of texts"),
        "oom_score_adj" => {
            // A negative one would let others die first.
            let fair = value.as_i64().filter(|score| (0..=1000).contains(score));
            set(
                name,
                fair,
                &mut host.oom_score_adj,
                "a number from 0 to 1000",
            )
        }
        _ => Err(ExtraError::Refused {
            name: name.to_owned(),
            reason: "it is not among those that are known to open no wall",
        }),
    }
}

fn set<T>(
    name: &str,
    value: Option<T>,
    field: &mut Option<T>,
    wanted: &'static str,
) -> Result<(), ExtraError> {
    let name = name.to_owned();
    *field = Some(value.ok_or(ExtraError::Value { name, wanted })?);
    Ok(())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text).collect()
}

/// A number of bytes, or a text such as `512m`.
fn size(value: &Value) -> Option<i64> {
    if let Some(bytes) = value.as_i64() {
        return Some(bytes).filter(|bytes| *bytes > 0);
    }
    let text = value.as_str()?.to_ascii_lowercase();
    let digits = text.trim_end_matches(['b', 'k', 'm', 'g', 't']);
    let factor: i64 = match text.get(digits.len()..)? {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        "t" | "tb" => 1 << 40,
        _ => return None,
    };
    let number: i64 = digits.parse().ok()?;
    number.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(extra: Value) -> Result<HostConfig, String> {
        let mut body = ContainerCreateBody::default();
        let extra = extra.as_object().unwrap().clone();
        apply(&extra, &mut body).map_err(|error| error.to_string())?;
        Ok(body.host_config.unwrap_or_default())
    }

    #[test]
    fn options_are_taken_as_docker_py_names_them() {
        let host = applied(json!({
            "mem_limit": "512m", "cpu_quota": 50_000, "pids_limit": 64, "runtime": "runsc",
        }))
        .unwrap();
        assert_eq!(host.memory, Some(512 << 20));
        assert_eq!(host.memory_swap, Some(512 << 20));
        assert_eq!(host.cpu_quota, Some(50_000));
        assert_eq!(host.pids_limit, Some(64));
        assert_eq!(host.runtime.as_deref(), Some("runsc"));
    }

    #[test]
    fn what_would_open_a_wall_is_refused_with_another_way() {
        for (name, _) in REFUSED {
            let error = applied(json!({ name: true })).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        let unknown = applied(json!({ "new_in_docker": 1 })).unwrap_err();
        assert!(unknown.contains("known to open no wall"), "{unknown}");
    }

    #[test]
    fn values_are_checked() {
        for extra in [
            json!({"mem_limit": "much"}),
            json!({"mem_limit": -1}),
            json!({"pids_limit": -1}),
            json!({"pids_limit": 0}),
            json!({"oom_score_adj": -500}),
            json!({"dns": "8.8.8.8"}),
            json!({"mem_limit": "99999999999t"}),
        ] {
            assert!(applied(extra.clone()).is_err(), "{extra}");
        }
    }
}
