//! What a sandbox was made with, written down beside it for `ps` and `inspect`.
//!
//! Of variables only the names are kept. What stands around a sandbox is not read from here: that
//! is asked of the kernel.

use std::path::Path;

use serde_json::{Value, json};
use zareba_config::{RuntimeKind, Settings};
use zareba_runtime::notes::{self, Draft};

const NAME: &str = "about.json";

/// Writes it down. A sandbox whose directory takes no note is as good as any other.
pub(super) fn write(directory: &Path, settings: &Settings, command: &[String]) {
    let published = Draft::write(directory, NAME, &document(settings, command));
    if let Err(error) = published.and_then(Draft::publish) {
        tracing::debug!(%error, "cannot note what a sandbox was made with");
    }
}

/// What was written down of the sandbox with this directory.
pub(super) fn read(directory: &Path) -> Option<Value> {
    notes::read(directory, NAME)
}

fn document(settings: &Settings, command: &[String]) -> Value {
    let native = &settings.native;
    let is_native = settings.runtime.kind == RuntimeKind::Native;
    let workspace = settings.runtime.workspace.as_deref().map(|directory| {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        json!({
            "directory": directory.to_string_lossy(),
            "mode": if is_native { native.workspace_mode.as_str() } else { "read-write" },
        })
    });
    let network = is_native.then(
        || json!({ "reach": native.network.as_str(), "allow": native.allow, "deny": native.deny }),
    );
    let variables = settings.env.iter();
    json!({
        "workspace": workspace,
        "network": network,
        "environment": variables.map(|(name, _)| name.to_owned()).collect::<Vec<_>>(),
        "command": command,
    })
}
