//! Processes that copy themselves for every sandbox, so that supervisors need not be loaded anew.
//!
//! To execute a program takes longer than to copy a process that stands ready, and what every
//! supervisor finds out first, the spawner has found out for all of them. A spawner is small, has a
//! single thread and keeps no secret, and knows nothing but its channel to us: an order is one message
//! with a command line, an environment and the three standard descriptors, and the answer to it is the
//! number of the new process, which is *our* child. It ends when we do.
//!
//! A spawner takes one order at a time. One is enough for four processors; a machine with more gets
//! another for every four, and each is started by the first order that finds all others busy
//! (`pool`).
//!
//! Design: docs/design/spawner.md.

mod ahead;
mod order;
mod pool;
mod running;
mod serve;

use std::{
    io::{self, PipeWriter},
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use tokio::net::unix::pipe;

pub(crate) use order::SpawnOrder;
use pool::{Member, Pool};
use running::Running;
pub use serve::serve_spawner;

/// What a copy waits for on its standard input before it begins.
const GO_AHEAD: &[u8; 1] = b">";

/// How long an order waits while its spawners are busy with the same orders. An order takes a fraction
/// of a millisecond, and to execute the program instead takes ten times that; a spawner that is busy
/// with one for longer than this has been stopped.
const PATIENCE: Duration = Duration::from_millis(100);

/// A machine has one spawner, and one more for each of these.
const PROCESSORS_PER_SPAWNER: usize = 4;

/// Starts supervisors by copying: from the third on, or from the first on for a caller that has said
/// that there will be many.
#[derive(Debug)]
pub(crate) struct Spawner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Whose sandboxes they are, for people who look at processes.
    state_dir: PathBuf,
    pool: Pool<Running>,
}

impl Spawner {
    pub(crate) fn new(state_dir: &Path) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            state_dir: state_dir.to_owned(),
            pool: Pool::new(1 + processors / PROCESSORS_PER_SPAWNER),
        }))
    }

    /// Starts a spawner ahead of all orders, if it can be.
    pub(crate) fn stand_by(&self, program: &Path) {
        self.0.pool.stand_by(|| self.0.begin(program));
    }

    /// Starts a supervisor whose standard input is the other end of `lifeline`, and returns its
    /// number; nothing when no spawner was asked, and the caller has to start a supervisor in the
    /// ordinary way.
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
        let pool = &self.0.pool;
        let Some(running) = pool.take(PATIENCE, || self.0.begin(program)) else {
            return Ok(None);
        };
        let copied = running.copy(&bytes, standard, lifeline);
        match copied {
            Ok(_) => pool.give_back(running),
            Err(_) => {
                // It ends before another begins.
                drop(running);
                pool.give_up();
            }
        }
        copied.map(Some)
    }
}

impl Shared {
    fn begin(self: &Arc<Self>, program: &Path) -> Option<Running> {
        let running = Running::start(program, &self.state_dir);
        let running = running
            .inspect_err(|error| tracing::warn!(%error, "cannot start a spawner of sandboxes"))
            .ok()?;
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Ok(ended) = running.end()
        {
            let (shared, program) = (Arc::downgrade(self), program.to_owned());
            runtime.spawn(replace_when_killed(shared, ended, program));
        }
        Some(running)
    }
}

impl Member for Running {
    fn is_alive(&self) -> bool {
        !self.has_ended()
    }

    fn has_worked(&self) -> bool {
        self.has_copied()
    }
}

/// Waits until an idle spawner was killed and starts another in its place, so that the next order
/// need not wait for one.
async fn replace_when_killed(shared: Weak<Shared>, ended: pipe::Receiver, program: PathBuf) {
    if ended.readable().await.is_ok()
        && let Some(shared) = shared.upgrade()
    {
        let replace = move || shared.pool.replace_ended(|| shared.begin(&program));
        // When the runtime ends first, no spawner is needed.
        let _ = tokio::task::spawn_blocking(replace).await;
    }
}
