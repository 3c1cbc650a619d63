//! Keeps the order of actions on one shell.
//!
//! Actions that are asked for at once travel by different tasks, and over HTTP by different
//! connections, so they could overtake each other. Each shell therefore has a queue, which hands
//! out turns in the order in which they were asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use zareba_protocol::{Action, ActionEvent, ControlKey, ShellName};

/// Queues that are kept though nobody waits in them; beyond this they are swept.
const IDLE_QUEUES_MAX: usize = 64;

/// The queues of one sandbox or session.
#[derive(Debug, Default)]
pub struct Turns {
    by_shell: Mutex<HashMap<ShellName, Arc<Queue<()>>>>,
}

/// The right to be the one action on a shell; `None` for what needs none.
pub type Turn = Option<OwnedMutexGuard<()>>;

impl Turns {
    /// Waits for an action's turn. Input is for what runs already, and waits for nobody.
    pub async fn wait(&self, action: &ActionEvent) -> Turn {
        match &action.action {
            Action::Run(run) if !run.is_static && !is_input(action) => {
                let queue = self.queue(action.shell.clone().unwrap_or_default());
                Some(queue.lock_owned().await)
            }
            _ => None,
        }
    }

    fn queue(&self, shell: ShellName) -> Arc<Queue<()>> {
        let mut by_shell = self.by_shell.lock().unwrap_or_else(PoisonError::into_inner);
        if by_shell.len() > IDLE_QUEUES_MAX {
            by_shell.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(by_shell.entry(shell).or_default())
    }
}

/// Whether an action is meant for a command that runs already.
pub fn is_input(action: &ActionEvent) -> bool {
    match &action.action {
        Action::Run(run) => run.is_input || ControlKey::of(run.command.trim()).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use zareba_protocol::RunCommand;

    use super::*;

    fn run(command: &str) -> ActionEvent {
        Action::Run(RunCommand::new(command)).into()
    }

    #[tokio::test]
    async fn input_passes_a_command_that_waits_and_another_command_does_not() {
        let turns = Turns::default();
        let first = turns.wait(&run("sleep 1")).await;
        assert!(first.is_some());
        for key in ["C-c", " C-\\ ", "C-[", "C-@", "C-?"] {
            assert!(turns.wait(&run(key)).await.is_none(), "{key}");
        }
        let input = Action::Run(RunCommand::input("yes")).into();
        assert!(turns.wait(&input).await.is_none());
        let other = run("true").with_shell(ShellName::new("other").unwrap());
        assert!(turns.wait(&other).await.is_some());
        let second = run("C-cat");
        let mut second = Box::pin(turns.wait(&second));
        let waits = tokio::select! {
            biased;
            _ = &mut second => false,
            () = std::future::ready(()) => true,
        };
        assert!(waits);
        drop(first);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn many_shells_do_not_leave_many_queues() {
        let turns = Turns::default();
        for number in 0..1000 {
            let shell = ShellName::new(format!("s{number}")).unwrap();
            drop(turns.wait(&run("true").with_shell(shell)).await);
        }
        assert!(turns.by_shell.lock().unwrap().len() <= IDLE_QUEUES_MAX + 1);
    }
}
