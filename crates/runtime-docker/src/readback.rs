//! Whether the Engine made what was asked for (DK-1).
//!
//! What was sent is compared with what the Engine says it has, field by field. Nothing that was
//! asked for may be missing or different; what the Engine adds to it is its own business, except
//! where the request says that there is nothing.

use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use serde_json::Value;

use crate::{engine::EngineKind, podman};

/// The longest list that is worth reading in an error.
const SHOWN_MAX: usize = 5;

/// What came out differently.
#[derive(Debug, thiserror::Error)]
#[error("the Engine made another container than was asked for: {}", .differences.join("; "))]
pub(crate) struct Mismatch {
    differences: Vec<String>,
}

/// Compares a request with what came of it.
pub(crate) fn compare(
    sent: &ContainerCreateBody,
    image: &str,
    seen: &ContainerInspectResponse,
    kind: EngineKind,
) -> Result<(), Mismatch> {
    let mut differences = Vec::new();
    let mut host = (json(&sent.host_config), json(&seen.host_config));
    if kind == EngineKind::Podman {
        differences.extend(podman::compare_mounts(sent, seen));
        podman::translate(&mut host.0, &mut host.1);
    }
    differ("HostConfig", &host.0, &host.1, &mut differences);
    let seen_config = json(&seen.config);
    let fields = [
        ("User", json(&sent.user)),
        ("Entrypoint", json(&sent.entrypoint)),
        ("Cmd", json(&sent.cmd)),
        ("Labels", json(&sent.labels)),
        ("Tty", json(&sent.tty)),
    ];
    for (name, wanted) in fields {
        let found = seen_config.get(name).unwrap_or(&Value::Null);
        differ(&format!("Config.{name}"), &wanted, found, &mut differences);
    }
    if seen.image.as_deref() != Some(image) {
        let found = seen.image.as_deref().unwrap_or("none");
        differences.push(format!("the image is `{found}` and not `{image}`"));
    }
    if differences.is_empty() {
        return Ok(());
    }
    differences.truncate(SHOWN_MAX);
    Err(Mismatch { differences })
}

/// A value as it travels to and from the Engine.
fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn differ(path: &str, wanted: &Value, found: &Value, differences: &mut Vec<String>) {
    if is_nothing(wanted) && is_nothing(found) {
        return;
    }
    match (wanted, found) {
        // An empty object asks for emptiness; a filled one for what is in it.
        (Value::Object(wanted), Value::Object(found)) if !wanted.is_empty() => {
            for (name, wanted) in wanted {
                let found = found.get(name).unwrap_or(&Value::Null);
                differ(&format!("{path}.{name}"), wanted, found, differences);
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                differ(&format!("{path}[{at}]"), wanted, found, differences);
            }
        }
        _ if wanted == found => {}
        _ => differences.push(format!(
            "{path} is {} and not {}",
            shortened(found),
            shortened(wanted)
        )),
    }
}

/// The Engine leaves out what is empty, zero or off.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(true) => false,
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(wanted: Value, found: Value) -> Vec<String> {
        let mut differences = Vec::new();
        differ("it", &wanted, &found, &mut differences);
        differences
    }

    #[test]
    fn what_was_asked_for_must_be_there_and_more_may_be() {
        assert_eq!(
            check(
                json!({"a": 1, "b": ["x"]}),
                json!({"a": 1, "b": ["x"], "c": 2})
            ),
            [""; 0]
        );
        assert_eq!(
            check(
                json!({"CapDrop": ["ALL"], "Privileged": false, "PidsLimit": 5}),
                json!({"CapDrop": null, "Privileged": true, "PidsLimit": 6})
            ),
            [
                "it.CapDrop is null and not [\"ALL\"]",
                "it.Privileged is true and not false",
                "it.PidsLimit is 6 and not 5",
            ]
        );
    }

    #[test]
    fn nothing_is_nothing_however_it_is_written() {
        for nothing in [json!(null), json!([]), json!(""), json!({}), json!(false)] {
            assert_eq!(check(json!([]), nothing), [""; 0]);
        }
        assert_eq!(check(json!([]), json!(["/dev/kvm"])).len(), 1);
        assert_eq!(check(json!({}), json!({"/x": ""})), [""; 0]);
        assert_eq!(check(json!({}), json!({"/x": "rw"})).len(), 1);
        assert_eq!(check(json!([["a"]]), json!([["b"]])).len(), 1);
    }
}
