//! A process that copies itself for every sandbox, so that supervisors need not be loaded anew.
//!
//! To execute a program takes longer than to copy a process that stands ready, and what every
//! supervisor finds out first, the spawner has found out for all of them. It is small, has a single
//! thread and keeps no secret, and knows nothing but its channel to us: an order is one message with
//! a command line, an environment and the three standard descriptors, and the answer to it is the
//! number of the new process, which is *our* child. It ends when we do.

mod ahead;
mod order;
mod running;
mod serve;

use std::{
    io::{self, PipeWriter},
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub(crate) use order::SpawnOrder;
use running::Running;
pub use serve::serve_spawner;

/// What a copy waits for on its standard input before it begins.
const GO_AHEAD: &[u8; 1] = b">";

/// How long somebody waits for a spawner that is busy with another's order. An order takes a fraction
/// of a millisecond, and to execute the program instead takes ten times that; a spawner that keeps
/// somebody waiting for longer than this has been stopped.
const PATIENCE: Duration = Duration::from_millis(100);

/// Starts supervisors by copying: from the third on, or from the first on for whoever has said that
/// there will be many.
#[derive(Debug)]
pub(crate) struct Spawner {
    /// Whose sandboxes they are, for people who look at processes.
    state_dir: PathBuf,
    state: Mutex<State>,
    /// Told when it is no longer busy.
    free: Condvar,
}

#[derive(Debug)]
enum State {
    /// Whoever needs one sandbox is better off without a second process.
    Unused,
    UsedOnce,
    Running(Running),
    /// With one order, whose caller has it.
    Busy,
}

impl Spawner {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            state: Mutex::new(State::Unused),
            free: Condvar::new(),
        }
    }

    /// Starts the spawner ahead of all orders, if it can be.
    pub(crate) fn stand_by(&self, program: &Path) {
        let mut state = self.lock();
        if let State::Unused | State::UsedOnce = *state {
            *state = self.begin(program);
        }
    }

    /// Starts a supervisor whose standard input is the other end of `lifeline`, and returns its
    /// number; nothing when no spawner was asked, and whoever wants a supervisor has to start it in
    /// the ordinary way.
    ///
    /// # Errors
    /// When a spawner was asked and has failed. It is ended then, but it has had the descriptors:
    /// they must not be used again.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        order: &SpawnOrder,
        standard: [BorrowedFd<'_>; 3],
        lifeline: &PipeWriter,
    ) -> io::Result<Option<i32>> {
        let Some(bytes) = order.encode() else {
            return Ok(None);
        };
        let Some(running) = self.take(program) else {
            return Ok(None);
        };
        let copied = running.copy(&bytes, standard, lifeline);
        // One that has failed ends before another is begun.
        let state = match copied {
            Ok(_) => State::Running(running),
            Err(_) => {
                drop(running);
                State::Unused
            }
        };
        *self.lock() = state;
        self.free.notify_one();
        copied.map(Some)
    }

    /// Takes the spawner for one order, once there is one and it is free.
    fn take(&self, program: &Path) -> Option<Running> {
        let is_busy = |state: &mut State| matches!(state, State::Busy);
        let waited = self
            .free
            .wait_timeout_while(self.lock(), PATIENCE, is_busy)
            .unwrap_or_else(PoisonError::into_inner);
        let mut state = waited.0;
        match std::mem::replace(&mut *state, State::Busy) {
            State::Running(running) => return Some(running),
            State::Busy => {}
            State::Unused => *state = State::UsedOnce,
            State::UsedOnce => *state = self.begin(program),
        }
        None
    }

    fn begin(&self, program: &Path) -> State {
        match Running::start(program, &self.state_dir) {
            Ok(running) => State::Running(running),
            Err(error) => {
                tracing::warn!(%error, "cannot start a spawner of sandboxes");
                State::UsedOnce
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever holds it changes it in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
