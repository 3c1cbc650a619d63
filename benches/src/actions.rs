//! The actions that are sent, as the whole requests that carry them.

use std::path::Path;

use serde_json::{Value, json};

use crate::http;

/// Where a command runs.
#[derive(Clone, Debug)]
pub(crate) enum Place<'a> {
    DefaultShell,
    Shell(&'a str),
    /// A shell of its own, which goes with it.
    Once,
}

/// A command that is waited for however long it is silent.
pub(crate) fn run(command: &str, place: &Place<'_>) -> Vec<u8> {
    let mut action = json!({
        "action": "run",
        "args": {
            "command": command,
            "blocking": true,
            "is_static": matches!(place, Place::Once),
        },
        "timeout": 60,
    });
    if let Place::Shell(name) = place {
        action["shell"] = Value::from(*name);
    }
    execute(&action)
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    execute(&json!({ "action": "read", "args": { "path": path } }))
}

/// Replaces the one occurrence of `old`.
pub(crate) fn replace(path: &Path, old: &str, new: &str) -> Vec<u8> {
    execute(&json!({
        "action": "edit",
        "args": {
            "path": path,
            "command": "str_replace",
            "old_str": old,
            "new_str": new,
            "impl_source": "oh_aci",
        },
    }))
}

pub(crate) fn alive() -> Vec<u8> {
    http::request("/alive", None)
}

fn execute(action: &Value) -> Vec<u8> {
    http::request(
        "/execute_action",
        Some(&json!({ "action": action }).to_string()),
    )
}
