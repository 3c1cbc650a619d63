//! Keeps the order of actions on one shell: requests travel by different connections and could
//! overtake each other.

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
pub(crate) struct Turns {
    queues: Mutex<HashMap<ShellName, Arc<Queue<()>>>>,
}

impl Turns {
    /// Waits for the action's turn; actions that use no shell of others need none.
    pub(crate) async fn take(&self, action: &ActionEvent) -> Option<OwnedMutexGuard<()>> {
        match &action.action {
            Action::Run(run) if !run.is_static => {}
            _ => return None,
        }
        let queue = self.queue(action.shell.clone().unwrap_or_default());
        Some(queue.lock_owned().await)
    }

    fn queue(&self, shell: ShellName) -> Arc<Queue<()>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() > IDLE_QUEUES_MAX {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(queues.entry(shell).or_default())
    }
}
