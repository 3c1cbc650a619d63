//! What a workspace brings for its own setting up: `.openhands/setup.sh` and
//! `.openhands/pre-commit.sh`.

use std::sync::Arc;

use zareba_protocol::{
    Action, ActionEvent, EventSource, ObservationKind, ReadFile, RunCommand, RuntimeStatus,
};
use zareba_runtime::Sandbox;

use crate::{ActionRequest, conductor::Conductor, path::Origin, pending};

const SETUP_SCRIPT: &str = ".openhands/setup.sh";
const SETUP_SECONDS_MAX: f64 = 600.0;
const HOOK_SCRIPT: &str = ".openhands/pre-commit.sh";

/// The line by which a hook of ours is known, here and to OpenHands.
const HOOK_MARK: &str = "This hook was installed by OpenHands";

/// Whether a workspace brought anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It did.
    Something,
    /// It did not.
    Nothing,
}

/// Does what the workspace asks for. What fails there is in its observation, and no reason not to
/// start.
pub(crate) async fn run(session: &Arc<Conductor>, sandbox: &dyn Sandbox) -> Done {
    let mut done = Done::Nothing;
    if exists(sandbox, SETUP_SCRIPT).await {
        done = Done::Something;
        let status = RuntimeStatus::SettingUpWorkspace;
        session
            .record_status(status, "Setting up workspace...")
            .await;
        let source = format!("chmod +x {SETUP_SCRIPT} && source {SETUP_SCRIPT}");
        let command = RunCommand {
            blocking: true,
            hidden: true,
            ..RunCommand::new(source)
        };
        perform(session, command).await;
    }
    if exists(sandbox, HOOK_SCRIPT).await {
        done = Done::Something;
        let status = RuntimeStatus::SettingUpGitHooks;
        session
            .record_status(status, "Setting up git hooks...")
            .await;
        let command = RunCommand {
            blocking: true,
            hidden: true,
            ..RunCommand::new(hook_command())
        };
        perform(session, command).await;
    }
    done
}

/// Asked of the sandbox directly: a question of ours is nothing that happened in the session.
async fn exists(sandbox: &dyn Sandbox, path: &str) -> bool {
    let read = ReadFile {
        end: 1,
        ..ReadFile::new(path)
    };
    let answer = sandbox.run_action(Action::Read(read).into()).await;
    answer.is_ok_and(|answer| matches!(answer.observation.kind, ObservationKind::Read { .. }))
}

/// Runs a command along the whole path, so that it is recorded like any other.
async fn perform(session: &Arc<Conductor>, command: RunCommand) {
    let action = ActionEvent {
        source: Some(EventSource::Environment),
        ..ActionEvent::from(Action::Run(command)).with_timeout(SETUP_SECONDS_MAX)
    };
    let request = ActionRequest {
        action,
        key: None,
        requester: None,
    };
    match session.accept(request, Origin::Setup).await {
        Ok(accepted) => {
            if let Some(answer) = accepted.answer {
                pending::outcome(answer).await;
            }
        }
        Err(error) => {
            tracing::warn!(session = %session.id, %error, "cannot set up a workspace");
        }
    }
}

/// Installs a hook that hands over to the script. A hook of somebody else's is kept beside it. In
/// a subshell, so that nothing of it stays in the default shell.
fn hook_command() -> String {
    let lines = [
        "#!/bin/bash",
        &format!("# {HOOK_MARK}"),
        &format!("script={HOOK_SCRIPT}"),
        "[ -x \"$script\" ] || { echo \"$script cannot be run, so nothing is checked\" >&2; exit 0; }",
        ". \"$script\"",
    ];
    let quoted: Vec<String> = lines
        .iter()
        .map(|line| format!("'{}'", line.replace('\'', r"'\''")))
        .collect();
    let quoted = quoted.join(" ");
    format!(
        "(set -e; test -d .git; mkdir -p .git/hooks; chmod +x {HOOK_SCRIPT}; hook=.git/hooks/pre-commit; \
         if [ -e $hook ] && ! grep -q '{HOOK_MARK}' $hook; then mv $hook $hook.local; chmod +x $hook.local; fi; \
         printf '%s\\n' {quoted} >$hook; chmod +x $hook)"
    )
}
