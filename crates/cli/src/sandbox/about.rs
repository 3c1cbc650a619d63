//! What a sandbox was made with, written down beside it for `ps` and `inspect`.
//!
//! Of variables only the names are kept. What stands around a sandbox is not read from here: that
//! is asked of the kernel.

use std::path::Path;

use serde_json::{Value, json};
use zareba_client::Session;
use zareba_config::{RuntimeKind, Settings};
use zareba_runtime::notes::{self, Draft};

use super::docker;

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

/// What a server says of the sandbox of a session, in the same form.
pub(super) fn of_session(session: &Session) -> Value {
    let mode = session.workspace_mode.map(|mode| json!(mode));
    let network = session.network.as_ref().map(
        |network| json!({ "reach": network.mode, "allow": network.allow, "deny": network.deny }),
    );
    json!({
        "runtime": session.runtime,
        "workspace": { "directory": session.workspace, "mode": mode },
        "network": network,
        "labels": session.labels,
    })
}

/// What a sandbox of this machine is made with, as far as it is in the settings.
pub(crate) fn of_settings(settings: &Settings) -> Value {
    document(settings, &[])
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
    let network = match settings.runtime.kind {
        RuntimeKind::Native => json!({
            "reach": native.network.as_str(),
            "allow": native.allow,
            "deny": native.deny,
        }),
        RuntimeKind::Docker => json!({ "reach": docker::network_name(settings) }),
        // Without walls, the network is that of the machine.
        _ => json!({ "reach": "host" }),
    };
    let variables = settings.env.iter();
    json!({
        "workspace": workspace,
        "network": network,
        "environment": variables.map(|(name, _)| name.to_owned()).collect::<Vec<_>>(),
        "command": command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_told_for_every_runtime() {
        let reach = |kind: RuntimeKind, word: &str| {
            let mut settings = Settings::default();
            settings.runtime.kind = kind;
            settings.docker.network = word.to_owned();
            document(&settings, &[])["network"]["reach"].clone()
        };
        assert_eq!(reach(RuntimeKind::Native, "internet"), "none");
        assert_eq!(reach(RuntimeKind::Docker, "internet"), "internet");
        assert_eq!(reach(RuntimeKind::Docker, "none"), "none");
        assert_eq!(reach(RuntimeKind::Local, "none"), "host");
    }
}
