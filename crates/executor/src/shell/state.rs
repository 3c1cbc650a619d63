//! What a shell is doing, and who waits for it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};
use zareba_wire::output::StopMeans;

use super::{
    process::ShellProcess,
    turn::{Ended, Patience, Previous, Turn},
};
use crate::outputs::ActionOutput;

/// A shell takes a command within microseconds, when all is well.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// The longest that anybody may wait; a float from the wire can be anything.
pub(super) const PATIENCE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// What the shell is doing.
#[derive(Debug)]
pub(super) enum State {
    Idle,
    Running(Running),
    /// A command ended and nobody has asked yet.
    Finished(Running, Ended),
}

/// A command that was handed to the shell.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) id: u64,
    pub(super) since: Instant,
    /// Its text, until the shell has taken it.
    pub(super) untaken: Option<String>,
    /// A turn that waited for it has ended.
    pub(super) observed: bool,
    /// How much of the output those turns had.
    pub(super) seen: u64,
    pub(super) previous: Option<Previous>,
}

/// Somebody who waits for the command.
pub(super) struct Waiter {
    pub(super) reply: oneshot::Sender<Turn>,
    pub(super) patience: Patience,
    pub(super) since: Instant,
    pub(super) last_output: Instant,
    pub(super) heard: Option<Arc<ActionOutput>>,
    /// What it is asked to end by.
    pub(super) stops: Option<watch::Receiver<Option<StopMeans>>>,
}

impl Running {
    /// The shell has had time enough to take it.
    pub(super) fn is_overdue(&self) -> bool {
        self.since.elapsed() > TAKEN_WITHIN
    }
}

impl Waiter {
    /// Ready when it went away, and when it is asked to end its command.
    pub(super) fn ends(
        &mut self,
    ) -> (
        impl Future<Output = ()> + '_,
        impl Future<Output = StopMeans> + '_,
    ) {
        let Self { reply, stops, .. } = self;
        (reply.closed(), stop_asked(stops.as_mut()))
    }

    /// When the patience ends, if nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let silence = self
            .patience
            .silence
            .map(|silence| self.last_output + silence);
        let total = self.patience.total.map(|total| self.since + total);
        match (silence, total) {
            (Some(silence), Some(total)) => Some(silence.min(total)),
            (silence, total) => silence.or(total),
        }
    }
}

/// Nothing is typed before the shell has taken the command, unless that lasts so long that only
/// a key can help.
pub(super) fn may_type(process: &ShellProcess, state: &State) -> bool {
    process.listens() || matches!(state, State::Running(running) if running.is_overdue())
}

pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn stop_asked(stops: Option<&mut watch::Receiver<Option<StopMeans>>>) -> StopMeans {
    let asked = match stops {
        Some(stops) => match stops.changed().await {
            Ok(()) => *stops.borrow_and_update(),
            // The sender is gone, so no caller can ask any more.
            Err(_) => None,
        },
        None => None,
    };
    match asked {
        Some(means) => means,
        None => std::future::pending().await,
    }
}
