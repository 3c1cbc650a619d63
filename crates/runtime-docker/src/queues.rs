//! Keeps the order of actions on one shell.
//!
//! Two actions that are asked for at once travel by different tasks, and over HTTP by different
//! connections, so they could overtake each other. Each shell therefore has a queue here, which
//! hands out turns in the order in which they were asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use zareba_protocol::{Action, ActionEvent, ShellName};

/// Queues that are kept though nobody waits in them; beyond this they are swept.
const IDLE_QUEUES_MAX: usize = 64;

/// The queues of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_shell: Mutex<HashMap<ShellName, Arc<Queue<()>>>>,
}

/// The right to be the one action on a shell.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Queues {
    /// Waits for the action's turn; actions that use no shell of others need none.
    pub(crate) async fn turn(&self, action: &ActionEvent) -> Option<Turn> {
        let Action::Run(run) = &action.action else {
            return None;
        };
        if run.is_static {
            return None;
        }
        let queue = self.queue(action.shell.clone().unwrap_or_default());
        Some(queue.lock_owned().await)
    }

    fn queue(&self, shell: ShellName) -> Arc<Queue<()>> {
        let mut by_shell = self.by_shell.lock().unwrap_or_else(PoisonError::into_inner);
        if by_shell.len() > IDLE_QUEUES_MAX {
            by_shell.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(by_shell.entry(shell).or_default())
    }
}

#[cfg(test)]
mod tests {
    use zareba_protocol::RunCommand;

    use super::*;

    fn action(shell: &str) -> ActionEvent {
        let action = ActionEvent::from(Action::Run(RunCommand::new("true")));
        action.with_shell(ShellName::new(shell).unwrap())
    }

    #[tokio::test]
    async fn many_shells_do_not_leave_many_queues() {
        let queues = Queues::default();
        for number in 0..1000 {
            drop(queues.turn(&action(&format!("s{number}"))).await);
        }
        assert!(queues.by_shell.lock().unwrap().len() <= IDLE_QUEUES_MAX + 1);
    }

    #[tokio::test]
    async fn a_queue_in_use_is_never_swept() {
        let queues = Queues::default();
        let turn = queues.turn(&action("mine")).await;
        for number in 0..1000 {
            drop(queues.turn(&action(&format!("s{number}"))).await);
        }
        let second = queues.queue(ShellName::new("mine").unwrap());
        assert!(second.try_lock().is_err());
        drop(turn);
        assert!(second.try_lock().is_ok());
    }
}
