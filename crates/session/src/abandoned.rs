//! A command that nobody waits for any more: it goes on, and its shell need not wait either.

use std::sync::Arc;

use futures_util::FutureExt as _;
use zareba_protocol::{Action, ActionEvent, RunCommand, ShellName};
use zareba_runtime::is_input;

use crate::conductor::Conductor;

impl Conductor {
    /// Before an action is handed over: the command that its shell is busy with is waited for no
    /// longer if its askers went away. It goes on as after a timeout, and its observation says so.
    pub(crate) fn release_shell(self: &Arc<Self>, number: u64, action: &ActionEvent) {
        let Some(shell) = shell_of(action) else {
            return;
        };
        let is_meant = |earlier: &ActionEvent| shell_of(earlier).as_ref() == Some(&shell);
        let Some(earlier) = self.pending.abandoned(number, is_meant) else {
            return;
        };
        // The same name again with no time left: whoever has it under way comes to an end. As
        // input it need not wait for its turn, and without a text it is none.
        let enough = ActionEvent {
            once: Some(self.once_name(earlier)),
            ..Action::Run(RunCommand::input("")).into()
        };
        let (session, enough) = (Arc::clone(self), enough.with_shell(shell).with_timeout(0.0));
        let mut asking = Box::pin(async move {
            // What comes of it is told to those who have it under way.
            let _ = session.run_inside(enough, None).await;
        });
        // Once it was polled, it is on its way before the action.
        if (&mut asking).now_or_never().is_none() {
            tokio::spawn(asking);
        }
    }
}

/// The shell that a command is waited for on.
fn shell_of(action: &ActionEvent) -> Option<ShellName> {
    match &action.action {
        Action::Run(run) if !run.is_static && !is_input(action) => {
            Some(action.shell.clone().unwrap_or_default())
        }
        _ => None,
    }
}
