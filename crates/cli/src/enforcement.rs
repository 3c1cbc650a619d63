//! What stands around a sandbox, layer by layer, in the words of a person.
//!
//! The document is the sandbox's enforcement report, as the kernel was asked for it. What it does
//! not say is left out.

use serde_json::Value;

use crate::table::size;

/// The stretch of time over which the kernel counts processor time.
const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// One layer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) what: String,
    /// What of it is missing, and how to get that; empty when nothing is.
    pub(crate) missing: Vec<String>,
}

/// The layers of a report, from the outermost to the innermost.
pub(crate) fn layers(report: &Value) -> Vec<Layer> {
    let whole = |name, what: Option<String>| {
        what.map(|what| Layer {
            name,
            what,
            missing: Vec::new(),
        })
    };
    [
        whole("namespaces", namespaces(report)),
        whole("users", users(report)),
        whole("mounts", mounts(report)),
        whole("capabilities", capabilities(report)),
        whole("seccomp", seccomp(report)),
        landlock(report),
        control_groups(report),
        whole("other limits", other_limits(report)),
        whole("each process", process_limits(report)),
        whole("network", network(report)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn namespaces(report: &Value) -> Option<String> {
    let all = report.get("namespaces")?.as_array()?;
    let own = all
        .iter()
        .filter(|one| one.get("is_own").and_then(Value::as_bool) == Some(true));
    let kinds: Vec<&str> = own
        .filter_map(|one| one.get("kind").and_then(Value::as_str))
        .collect();
    Some(format!("its own: {}", kinds.join(", ")))
}

fn users(report: &Value) -> Option<String> {
    let first = report.get("users")?.as_array()?.first()?;
    let number = |key: &str| first.get(key).and_then(Value::as_u64);
    Some(format!(
        "{} inside is {} outside",
        number("inside")?,
        number("outside")?
    ))
}

fn mounts(report: &Value) -> Option<String> {
    let mounts = report.get("mounts")?;
    let count = mounts.get("total").and_then(Value::as_u64);
    let all = || mounts.get("mounts").and_then(Value::as_array).map(Vec::len);
    let count = count.or_else(|| u64::try_from(all()?).ok())?;
    Some(format!("{count}, and nothing else of this machine's files"))
}

fn capabilities(report: &Value) -> Option<String> {
    let count = report.get("capabilities")?.as_u64()?;
    let gains_none = report.get("no_new_privileges")?.as_bool()?;
    let held = match count {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let future = if gains_none {
        ", and no program can give it any"
    } else {
        ""
    };
    Some(format!("{held}{future}"))
}

fn seccomp(report: &Value) -> Option<String> {
    Some(match report.get("seccomp_filters")?.as_u64() {
        Some(1) => "1 filter".to_owned(),
        Some(count) => format!("{count} filters"),
        None => "filtered; this kernel does not say by how many".to_owned(),
    })
}

fn landlock(report: &Value) -> Option<Layer> {
    let landlock = report.get("landlock")?;
    let version = landlock.get("abi")?.as_i64()?;
    let missing = landlock.get("missing").and_then(Value::as_array);
    let missing = missing.into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<String> = missing
        .map(|right| format!("{right}: needs a newer kernel"))
        .collect();
    Some(Layer {
        name: "Landlock",
        what: format!("version {version}"),
        missing,
    })
}

fn control_groups(report: &Value) -> Option<Layer> {
    let groups = report.get("control_groups")?;
    let list = |key: &str| {
        groups
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let text = |row: &Value, key: &str| Some(row.get(key)?.as_str()?.to_owned());
    let held: Vec<String> = list("enforced")
        .filter_map(|row| {
            let (limit, value) = (text(row, "limit")?, text(row, "value")?);
            let value = match limit.as_str() {
                "swap" => without_memory(value, list("enforced")),
                _ => value,
            };
            Some(format!("{limit} {}", with_unit(&limit, value)))
        })
        .collect();
    // Mostly all are missing for one reason, which is told once.
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for row in list("missing") {
        let reason = text(row, "reason").zip(text(row, "remedy"));
        let Some((limit, (reason, remedy))) = text(row, "limit").zip(reason) else {
            continue;
        };
        let reason = format!("{reason}; {remedy}");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, limits)) => limits.push(limit),
            None => reasons.push((reason, vec![limit])),
        }
    }
    let missing = reasons.into_iter();
    let missing = missing.map(|(reason, limits)| format!("{}: {reason}", limits.join(", ")));
    Some(Layer {
        name: "control groups",
        what: if held.is_empty() {
            "no limit".to_owned()
        } else {
            held.join(", ")
        },
        missing: missing.collect(),
    })
}

/// What may go to swap. The first generation of control groups limits it together with memory.
fn without_memory<'a>(swap: String, mut enforced: impl Iterator<Item = &'a Value>) -> String {
    let memory = enforced.find(|row| row.get("limit").is_some_and(|limit| limit == "memory"));
    let memory = memory.and_then(|row| row.get("value")?.as_str()?.parse::<u64>().ok());
    let beside = memory.and_then(|memory| swap.parse::<u64>().ok()?.checked_sub(memory));
    beside.map_or(swap, |beside| beside.to_string())
}

/// The kernel's numbers, which have units only for people who know them.
fn with_unit(limit: &str, value: String) -> String {
    let number = value.split_whitespace().next().map(str::parse::<u64>);
    match (limit, number) {
        ("memory" | "swap", Some(Ok(bytes))) => size(bytes),
        ("cpu", Some(Ok(microseconds))) => {
            let tenths = microseconds * 10 / CPU_PERIOD_MICROSECONDS;
            format!("{}.{}", tenths / 10, tenths % 10)
        }
        _ => value,
    }
}

/// Limits that something else holds, with what that is and how exact it is.
fn other_limits(report: &Value) -> Option<String> {
    let rows = report.get("other_limits")?.as_array()?;
    let text = |row: &Value, key: &str| Some(row.get(key)?.as_str()?.to_owned());
    let told = rows.iter().filter_map(|row| {
        let (limit, held_by) = (text(row, "limit")?, text(row, "held_by")?);
        let value = row.get("value")?.as_u64()?;
        let value = match limit.as_str() {
            "memory" | "disk" => size(value),
            _ => value.to_string(),
        };
        let overshoot = match text(row, "overshoot")?.as_str() {
            "" => String::new(),
            overshoot => format!(", which can be passed by {overshoot}"),
        };
        Some(format!("{limit} {value} by {held_by}{overshoot}"))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn process_limits(report: &Value) -> Option<String> {
    let rows = report.get("process_limits")?.as_array()?;
    let limited = rows
        .iter()
        .filter(|row| row.get("hard").is_some_and(Value::is_u64));
    Some(format!("{} limits", limited.count()))
}

fn network(report: &Value) -> Option<String> {
    let network = report.get("network")?;
    let word = network
        .as_str()
        .or_else(|| network.as_object()?.keys().next().map(String::as_str))?;
    Some(match word.to_ascii_lowercase().as_str() {
        "none" => "a loopback of its own, and nothing else".to_owned(),
        "host" => "this machine's".to_owned(),
        other => other.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_told_layer_by_layer() {
        let report = json!({
            "namespaces": [
                { "kind": "user", "is_own": true },
                { "kind": "network", "is_own": false },
            ],
            "capabilities": 0,
            "no_new_privileges": true,
            "seccomp_filters": 1,
            "landlock": { "abi": 3, "missing": ["signals"] },
            "control_groups": {
                "enforced": [
                    { "limit": "memory", "value": "2147483648" },
                    { "limit": "cpu", "value": "150000 100000" },
                ],
                "missing": [
                    { "limit": "pids", "reason": "no controller", "remedy": "delegate it" },
                    { "limit": "swap", "reason": "no controller", "remedy": "delegate it" },
                ],
            },
            "other_limits": [
                { "limit": "memory", "held_by": "the supervisor", "value": 1 << 30, "overshoot": "a little" },
                { "limit": "pids", "held_by": "RLIMIT_NPROC", "value": 512, "overshoot": "" },
            ],
            "network": "none",
        });
        let told = layers(&report);
        let lines: Vec<String> = told
            .iter()
            .map(|layer| format!("{}: {} {:?}", layer.name, layer.what, layer.missing))
            .collect();
        assert_eq!(
            lines,
            [
                "namespaces: its own: user []",
                "capabilities: none, and no program can give it any []",
                "seccomp: 1 filter []",
                "Landlock: version 3 [\"signals: needs a newer kernel\"]",
                "control groups: memory 2.0 GiB, cpu 1.5 [\"pids, swap: no controller; delegate it\"]",
                "other limits: memory 1.0 GiB by the supervisor, which can be passed by a little; \
                 pids 512 by RLIMIT_NPROC []",
                "network: a loopback of its own, and nothing else []",
            ]
        );
    }

    #[test]
    fn swap_is_told_without_the_memory_that_it_is_counted_with() {
        for (swap, told) in [
            ("2147483648", "0 B"),
            ("0", "0 B"),
            ("3221225472", "1.0 GiB"),
        ] {
            let report = json!({ "control_groups": { "enforced": [
                { "limit": "memory", "value": "2147483648" },
                { "limit": "swap", "value": swap },
            ] } });
            let layers = layers(&report);
            let groups = layers.iter().find(|layer| layer.name == "control groups");
            let expected = format!("memory 2.0 GiB, swap {told}");
            assert_eq!(
                groups.map(|layer| layer.what.as_str()),
                Some(expected.as_str())
            );
        }
    }

    #[test]
    fn what_is_no_report_has_no_layers() {
        for report in [
            json!(null),
            json!([]),
            json!({ "namespaces": 3, "landlock": "yes" }),
        ] {
            assert_eq!(layers(&report), []);
        }
    }
}
