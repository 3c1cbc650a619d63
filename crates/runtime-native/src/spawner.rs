//! A process that copies itself for every sandbox, so that supervisors need not be loaded anew.
//!
//! To execute a program takes longer than to copy a process that stands ready, and what every
//! supervisor finds out first, the spawner has found out for all of them. It is small, has a single
//! thread and no secret, and knows nothing but its channel to us: an order is one message with a
//! command line, an environment and the three standard descriptors, and the answer to it is the
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
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::net::{RecvFlags, recv, sockopt};
use zareba_confine::handover;

pub(crate) use order::SpawnOrder;
pub use serve::serve_spawner;

/// How long a spawner may take to answer, which is a matter of microseconds unless the machine
/// is overloaded.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How long the place in a spawner's command line is that its copies show their own in.
const ROOM: usize = 200;

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

    /// Starts a supervisor and returns its number; nothing when that is better done by whoever
    /// asks.
    ///
    /// # Errors
    /// When it is not known whether one was started. It has the standard descriptors that it was
    /// given, and ends when it finds nobody at their other ends.
    pub(crate) fn spawn(
        &self,
        program: &Path,
        order: &SpawnOrder,
        standard: [BorrowedFd<'_>; 3],
    ) -> Option<io::Result<i32>> {
        let bytes = order.encode()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
            State::Running(running) => {
                let sent = handover::send_with(&running.channel, &bytes, &standard);
                let answer = sent.map(|()| running.answer());
                if !matches!(answer, Ok(Ok(_))) {
                    tracing::warn!(?answer, "a spawner of sandboxes has failed");
                    *state = State::Unused;
                }
                // What was not sent was not done.
                answer.ok()
            }
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
            .args(["--room", &".".repeat(ROOM)])
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Keys pressed at our terminal are not meant for it.
            .process_group(0)
            .spawn()?;
        Ok(Self { channel, process })
    }

    fn answer(&self) -> io::Result<i32> {
        let mut answer = [0; 4];
        let (length, _) = recv(&self.channel, &mut answer, RecvFlags::empty())?;
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
