//! A process that copies itself for every sandbox, so that supervisors need not be loaded anew.
//!
//! To execute a program takes longer than to copy a process that stands ready, and what every
//! supervisor finds out first, the spawner has found out for all of them. It is small, has a single
//! thread and keeps no secret, and knows nothing but its channel to us: an order is one message with
//! a command line, an environment and the three standard descriptors, and the answer to it is the
//! number of the new process, which is *our* child. It ends when we do.

mod order;
mod running;
mod serve;

use std::{
    io::{self, PipeWriter},
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{Mutex, TryLockError},
};

pub(crate) use order::SpawnOrder;
use running::Running;
pub use serve::serve_spawner;

/// What a copy waits for on its standard input before it begins.
const GO_AHEAD: &[u8; 1] = b">";

/// Starts supervisors, from the third on by copying.
#[derive(Debug)]
pub(crate) struct Spawner {
    /// Whose sandboxes they are, for people who look at processes.
    state_dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Whoever needs one sandbox is better off without a second process.
    Unused,
    UsedOnce,
    Running(Running),
}

impl Spawner {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            state: Mutex::new(State::Unused),
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
        // Whoever would have to wait is served faster in the ordinary way, and never long.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        match &*state {
            State::Unused => *state = State::UsedOnce,
            State::UsedOnce => match Running::start(program, &self.state_dir) {
                Ok(running) => *state = State::Running(running),
                Err(error) => tracing::warn!(%error, "cannot start a spawner of sandboxes"),
            },
            State::Running(running) => {
                let copied = running.copy(&bytes, standard, lifeline);
                if copied.is_err() {
                    *state = State::Unused;
                }
                return copied.map(Some);
            }
        }
        Ok(None)
    }
}
