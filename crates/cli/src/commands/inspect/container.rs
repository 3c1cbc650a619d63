//! What stands around a container, in the words of a person.

use serde_json::{Value, json};
use zareba_runtime::SandboxId;
use zareba_runtime_docker::DockerRuntime;

use crate::{failure::Failure, sandbox, table::size};

/// How one that does not run any more has ended.
pub(super) async fn ended(docker: &DockerRuntime, id: &SandboxId) -> Result<Value, Failure> {
    let reason = docker.ended(id).await;
    let reason = reason.map_err(|error| sandbox::failure(&error))?;
    Ok(json!({ "ended": reason.map(|reason| reason.describe()) }))
}

/// Rows for what the Docker Engine tells; none for the sandboxes of others.
pub(super) fn rows(document: &Value) -> Vec<(&'static str, String)> {
    let mut rows = usage(document);
    let reason = document.pointer("/ended/message").and_then(Value::as_str);
    rows.extend(reason.map(|reason| ("ended", reason.to_owned())));
    let Some(walls) = document.get("walls") else {
        return rows;
    };
    let text = |key: &str| walls.get(key).and_then(Value::as_str);
    rows.push(("walls", String::new()));
    let mut add = |name, what: Option<String>| rows.extend(what.map(|what| (name, what)));
    add("  user", text("user").map(str::to_owned));
    add("  capabilities", Some(capabilities(walls)));
    let filter = text("seccomp").filter(|filter| *filter == "ours");
    add("  seccomp", filter.map(|_| "1 filter".to_owned()));
    let root = walls.get("read_only_root").and_then(Value::as_bool);
    let root = root.map(|read_only| if read_only { "read-only" } else { "writable" });
    add("  image's files", root.map(str::to_owned));
    add("  network", text("network").map(str::to_owned));
    let relaxed = document.get("relaxed").and_then(Value::as_array);
    for item in relaxed.into_iter().flatten().filter_map(Value::as_str) {
        rows.push(("  weaker", item.to_owned()));
    }
    rows
}

fn usage(document: &Value) -> Vec<(&'static str, String)> {
    let number = |key: &str| document.get("use")?.get(key)?.as_u64();
    let mut rows = Vec::new();
    if let Some(bytes) = number("memory_bytes") {
        let limit = number("memory_limit_bytes");
        let limit = limit.map_or_else(String::new, |limit| format!(" of {}", size(limit)));
        rows.push(("memory", format!("{}{limit}", size(bytes))));
    }
    if let Some(count) = number("pids") {
        rows.push(("processes", count.to_string()));
    }
    if let Some(time) = number("cpu_nanoseconds") {
        let time = std::time::Duration::from_nanos(time);
        rows.push(("processor time", format!("{:.2} s", time.as_secs_f64())));
    }
    rows
}

fn capabilities(walls: &Value) -> String {
    let added = walls.get("capabilities_added").and_then(Value::as_array);
    let added = added.into_iter().flatten().filter_map(Value::as_str);
    let added: Vec<&str> = added.collect();
    match added.as_slice() {
        [] => "none".to_owned(),
        added => added.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_told_with_what_is_weaker() {
        let document = json!({
            "walls": {
                "user": "1000:1000",
                "capabilities_added": ["NET_RAW"],
                "seccomp": "ours",
                "read_only_root": true,
                "network": "none",
            },
            "relaxed": ["capability: NET_RAW"],
            "use": { "memory_bytes": 1024, "memory_limit_bytes": 2048, "cpu_nanoseconds": 1_500_000_000 },
        });
        let told = rows(&document);
        let told: Vec<String> = told
            .iter()
            .map(|(name, what)| format!("{name}={what}"))
            .collect();
        let expected = [
            "memory=1.0 KiB of 2.0 KiB",
            "processor time=1.50 s",
            "walls=",
            "  user=1000:1000",
            "  capabilities=NET_RAW",
            "  seccomp=1 filter",
            "  image's files=read-only",
            "  network=none",
            "  weaker=capability: NET_RAW",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_container_has_no_rows() {
        for document in [json!(null), json!({ "enforcement": {} })] {
            assert_eq!(rows(&document), []);
        }
    }
}
