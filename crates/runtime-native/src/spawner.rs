//! A process that copies itself for every sandbox, so that supervisors need not be loaded anew.
//!
//! To execute a program takes longer than to copy a process that stands ready, and what every
//! supervisor finds out first, the spawner has found out for all of them. It is small, has a single
//! thread and keeps no secret, and knows nothing but its channel to us: an order is one message with
//! a command line, an environment and the three standard descriptors, and the answer to it is the
//! number of the new process, which is *our* child. It ends when we do.

mod order;
mod serve;

use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, TryLockError},
    time::Duration,
};

use rustix::{
    io::retry_on_intr,
    net::{RecvFlags, recv, sockopt},
};
use zareba_confine::handover;

pub(crate) use order::SpawnOrder;
pub use serve::serve_spawner;

/// How long a spawner may take to answer, which is a matter of microseconds unless the machine
/// is overloaded; then an ordinary start is no worse.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// What a copy waits for on its standard input before it begins.
pub(crate) const GO_AHEAD: &[u8; 1] = b">";

/// How long the place in a spawner's command line is that its copies show their own in.
const ROOM: usize = 2000;

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

#[derive(Debug)]
struct Running {
    channel: OwnedFd,
    process: Child,
}

impl Spawner {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            state: Mutex::new(State::Unused),
        }
    }

    /// Starts a supervisor and returns its number; nothing when whoever asks has to start one in
    /// the ordinary way. The supervisor begins when it reads [`GO_AHEAD`] on its standard input.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        order: &SpawnOrder,
        standard: [BorrowedFd<'_>; 3],
    ) -> Option<i32> {
        let bytes = order.encode()?;
        // Whoever would have to wait is served faster in the ordinary way, and never long.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        match &*state {
            State::Unused => {
                *state = State::UsedOnce;
                None
            }
            State::UsedOnce => {
                match Running::start(program, &self.state_dir) {
                    Ok(running) => *state = State::Running(running),
                    Err(error) => tracing::warn!(%error, "cannot start a spawner of sandboxes"),
                }
                None
            }
            State::Running(running) => match running.order(&bytes, &standard) {
                Ok(pid) => Some(pid),
                Err(error) => {
                    tracing::warn!(%error, "a spawner of sandboxes has failed");
                    *state = State::Unused;
                    None
                }
            },
        }
    }
}

impl Running {
    fn start(program: &Path, state_dir: &Path) -> io::Result<Self> {
        let (channel, theirs) = handover::pair()?;
        sockopt::set_socket_timeout(&channel, sockopt::Timeout::Recv, Some(ANSWER_MAX))?;
        let process = Command::new(program)
            .args(["spawner", "--for"])
            .arg(state_dir)
            .args(["--room", &" ".repeat(ROOM)])
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Keys pressed at our terminal are not meant for it.
            .process_group(0)
            .spawn()?;
        Ok(Self { channel, process })
    }

    /// Without an answer there may be a copy. It never goes ahead, and ends.
    fn order(&self, order: &[u8], standard: &[BorrowedFd<'_>; 3]) -> io::Result<i32> {
        handover::send_with(&self.channel, order, standard)?;
        let mut answer = [0; 4];
        let (length, _) = retry_on_intr(|| recv(&self.channel, &mut answer, RecvFlags::empty()))?;
        match i32::from_ne_bytes(answer) {
            _ if length != answer.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            errno @ ..0 => Err(io::Error::from_raw_os_error(-errno)),
            pid => Ok(pid),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It holds nothing that would have to be put in order.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
