//! Shells whose command has outlived its action, for sandboxes that cannot say what goes on inside.
//!
//! A backend without control groups of its own, such as `docker` and `remote`, does not tell whether a
//! command still runs. The last observation of each shell does: without an exit code the command
//! goes on. The price is that a command which ends unseen counts until the shell is used again, so
//! that its session is kept rather than paused or closed in the middle of work.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, ObservationEvent, ObservationKind, ShellName,
};

/// Shells that are remembered: more than an executor has at once.
const SHELLS_MAX: usize = 256;

/// The shells of one session in which a command goes on, as far as its observations tell.
#[derive(Debug, Default)]
pub(crate) struct Outlived {
    shells: Mutex<BTreeSet<ShellName>>,
}

impl Outlived {
    /// Takes note of what came of a command.
    pub(crate) fn note(&self, shell: Option<ShellName>, answer: &ObservationEvent) {
        let (Some(shell), ObservationKind::Run(output)) = (shell, &answer.observation.kind) else {
            return;
        };
        let mut shells = self.shells.lock().unwrap_or_else(PoisonError::into_inner);
        if output.metadata.exit_code != CommandMetadata::NO_EXIT_CODE {
            shells.remove(&shell);
        } else if shells.len() < SHELLS_MAX {
            shells.insert(shell);
        }
    }

    /// Whether a command goes on somewhere.
    pub(crate) fn is_any(&self) -> bool {
        let shells = self.shells.lock().unwrap_or_else(PoisonError::into_inner);
        !shells.is_empty()
    }
}

/// The shell that an action runs a command in, or types into.
pub(crate) fn shell_used(action: &ActionEvent) -> Option<ShellName> {
    match &action.action {
        Action::Run(run) if !run.is_static => Some(action.shell.clone().unwrap_or_default()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use zareba_protocol::{CommandOutput, Observation};

    use super::*;

    fn ended(exit_code: i64) -> ObservationEvent {
        let mut output = CommandOutput::new("make");
        output.metadata.exit_code = exit_code;
        Observation::run("", output).into()
    }

    #[test]
    fn a_command_goes_on_until_its_shell_tells_an_exit_code() {
        let outlived = Outlived::default();
        let shell = |name: &str| ShellName::new(name).ok();
        outlived.note(shell("one"), &ended(-1));
        outlived.note(shell("two"), &ended(-1));
        outlived.note(shell("one"), &Observation::error("no such thing").into());
        outlived.note(shell("one"), &ended(2));
        outlived.note(None, &ended(-1));
        assert!(outlived.is_any());
        outlived.note(shell("two"), &ended(0));
        assert!(!outlived.is_any());
        for number in 0..2 * SHELLS_MAX {
            outlived.note(shell(&format!("s{number}")), &ended(-1));
        }
        assert_eq!(outlived.shells.lock().unwrap().len(), SHELLS_MAX);
    }
}
