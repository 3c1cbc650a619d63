//! Settings of `--set` that the command would not read. They are refused: many are protections, and a
//! protection that is passed over in silence is worse than none.

use zareba_config::{Configuration, Origin, RuntimeKind};

use super::asked::{AMOUNTS_AND_NETWORK, OF_NATIVE};
use crate::{exit::Exit, failure::Failure};

/// Sections that only the server reads.
const OF_SERVER: [&str; 5] = ["log.", "pool.", "server.", "sessions.", "telemetry."];

/// The one setting of `docker` that only the server reads: building is what its clients ask for.
const BUILD: &str = "docker.build";

/// A setting of all runtimes by its name, of which only `docker` has a use.
const WORKSPACE_IN_SANDBOX: &str = "runtime.workspace_in_sandbox";

/// What reads a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Every command that makes a sandbox, or the command itself.
    Any,
    /// Sandboxes of one runtime.
    Runtime(RuntimeKind),
    /// Another command.
    Command(&'static str),
}

/// The settings that `--set` has given, by their own names.
pub(super) fn set_by_hand(configuration: &Configuration) -> impl Iterator<Item = &'static str> {
    let keys = zareba_config::keys().into_iter().map(|key| key.path);
    keys.filter(
        |key| matches!(configuration.origin(key), Origin::Flag { name } if name.starts_with("--set ")),
    )
}

/// Refuses what is set for this command and nothing of it reads.
///
/// # Errors
/// Names the setting, and what reads it.
pub(super) fn refuse_unread(configuration: &Configuration) -> Result<(), Failure> {
    let kind = configuration.settings.runtime.kind;
    let mut set = set_by_hand(configuration);
    set.try_for_each(|key| refuse_unread_of(kind, key))
}

fn refuse_unread_of(kind: RuntimeKind, key: &str) -> Result<(), Failure> {
    let (unread, hint) = match reader(key) {
        Reader::Any => return Ok(()),
        Reader::Runtime(runtime) if runtime == kind || is_asked_by_request(kind, key) => {
            return Ok(());
        }
        Reader::Runtime(runtime) => {
            let message = format!("has no effect on the runtime `{}`", kind.as_str());
            let runtime = runtime.as_str();
            (
                message,
                format!("use `--runtime {runtime}`, or leave it out"),
            )
        }
        Reader::Command(command) => (
            "has no effect on the sandbox of a command".to_owned(),
            format!("`{command}` reads it; leave it out"),
        ),
    };
    Err(Failure::new(Exit::Usage, format!("`--set {key}` {unread}")).hint(hint))
}

fn reader(key: &str) -> Reader {
    let is_of = |section: &&str| key.starts_with(*section);
    if key == BUILD || OF_SERVER.iter().any(is_of) {
        return Reader::Command("zareba serve");
    }
    if key.starts_with("executor.") {
        return Reader::Command("zareba executor");
    }
    if key == WORKSPACE_IN_SANDBOX || ["docker.", "sandbox."].iter().any(is_of) {
        return Reader::Runtime(RuntimeKind::Docker);
    }
    match key.starts_with("native.") {
        true => Reader::Runtime(RuntimeKind::Native),
        false => Reader::Any,
    }
}

/// Whether the runtime is asked for it by the sandbox's request, and so holds or refuses it itself.
fn is_asked_by_request(kind: RuntimeKind, key: &str) -> bool {
    let of_native = key.strip_prefix("native.");
    let has_no_walls = matches!(kind, RuntimeKind::Cli | RuntimeKind::Local);
    OF_NATIVE.contains(&key)
        || has_no_walls && of_native.is_some_and(|name| AMOUNTS_AND_NETWORK.contains(&name))
}

#[cfg(test)]
#[path = "unread_tests.rs"]
mod tests;
