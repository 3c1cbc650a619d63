//! What a shell is doing, and who waits for it.

use std::time::Duration;

use tokio::{sync::oneshot, time::Instant};

use super::{
    process::ShellProcess,
    turn::{Ended, Patience, Previous, Turn},
};

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
    pub(super) previous: Option<Previous>,
}

/// Somebody who waits for the command.
pub(super) struct Waiter {
    pub(super) reply: oneshot::Sender<Turn>,
    pub(super) patience: Patience,
    pub(super) since: Instant,
    pub(super) last_output: Instant,
}

impl Running {
    /// The shell has had time enough to take it.
    pub(super) fn is_overdue(&self) -> bool {
        self.since.elapsed() > TAKEN_WITHIN
    }
}

impl Waiter {
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

pub(super) async fn asker_gone(waiter: &mut Option<Waiter>) {
    match waiter {
        Some(waiter) => waiter.reply.closed().await,
        None => std::future::pending().await,
    }
}
