//! Descriptors that whoever started us left open: one to tell that we are ready, one whose end
//! tells us that nobody wants us any more.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{IntoRawFd as _, OwnedFd},
        unix::net::UnixListener,
    },
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{DumpableBehavior, set_dumpable_behavior},
    stdio,
};
use tokio::sync::oneshot;
use zareba_terminal::take_inherited;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The watching thread does nothing but wait.
const WATCH_STACK_BYTES: usize = 64 * 1024;

/// Where to say that actions can run.
#[derive(Debug)]
pub(crate) struct ReadySignal(File);

/// A descriptor that stays open as long as somebody wants us.
#[derive(Debug)]
pub(crate) struct Lifeline(OwnedFd);

/// The longest key worth reading.
const KEY_MAX_BYTES: u64 = 4096;

/// A socket that listens already.
pub(crate) fn listener(number: u16) -> Result<UnixListener, Failure> {
    Ok(UnixListener::from(take(number, "--listen-fd")?))
}

/// A key that was written to a pipe. From now on nobody of the same user can look at our memory,
/// or reach anything through our directory in `/proc` (NS-7). Not earlier: until it sends the
/// key, whoever has started us looks at what stands around us.
pub(crate) fn key(number: u16) -> Result<String, Failure> {
    let mut key = String::new();
    File::from(take(number, "--key-fd")?)
        .take(KEY_MAX_BYTES)
        .read_to_string(&mut key)
        .or_fail(Exit::Start, "cannot read the session key")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(io::Error::from)
        .or_fail(Exit::Start, "cannot keep others from our memory")?;
    Ok(key)
}

impl ReadySignal {
    pub(crate) fn take(number: u16) -> Result<Self, Failure> {
        Ok(Self(File::from(take(number, "--ready-fd")?)))
    }

    /// Says it and closes the descriptor. Nobody may be listening any more, which is theirs to
    /// notice.
    pub(crate) fn send(mut self) {
        if let Err(error) = self.0.write_all(b"ready\n") {
            tracing::debug!(%error, "nobody waits for us to be ready");
        }
    }
}

impl ReadySignal {
    /// Leaves the descriptor open until this process ends.
    pub(crate) fn close_with_us(self) {
        let _ = OwnedFd::from(self.0).into_raw_fd();
    }
}

impl Lifeline {
    pub(crate) fn take(number: u16) -> Result<Self, Failure> {
        Ok(Self(take(number, "--lifeline-fd")?))
    }

    /// Ready when the descriptor has reached its end. A thread waits for it, because the
    /// descriptor may be anything, and switching it to non-blocking would switch it for
    /// everybody who shares it.
    pub(crate) fn watch(self) -> Result<oneshot::Receiver<()>, Failure> {
        let (tell, ended) = oneshot::channel();
        let wait = move || {
            read_to_end(&self.0);
            // Nobody asks any more when we are stopping already.
            let _ = tell.send(());
        };
        thread::Builder::new()
            .name("lifeline".to_owned())
            .stack_size(WATCH_STACK_BYTES)
            .spawn(wait)
            .or_fail(Exit::Start, "cannot watch the lifeline")?;
        Ok(ended)
    }
}

/// What is written to a lifeline means nothing and is read away.
fn read_to_end(lifeline: &OwnedFd) {
    let mut ignored = [0; 256];
    loop {
        match rustix::io::read(lifeline, &mut ignored) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::new(lifeline, PollFlags::IN)];
                let _ = poll(&mut fds, None);
            }
            Err(_) => return,
        }
    }
}

fn take(number: u16, flag: &str) -> Result<OwnedFd, Failure> {
    let taken = match number {
        0..=2 => take_standard(number),
        _ => take_inherited(number.into()),
    };
    taken
        .or_fail(Exit::Usage, format!("cannot use descriptor {number}"))
        .map_err(|failure| failure.hint(format!("`{flag}` takes one that is open at our start")))
}

/// Takes one of the standard three, and leaves nothing in its place that anybody could block on.
fn take_standard(number: u16) -> io::Result<OwnedFd> {
    let standard = match number {
        0 => stdio::stdin(),
        1 => stdio::stdout(),
        _ => stdio::stderr(),
    };
    let taken = rustix::io::fcntl_dupfd_cloexec(standard, 3)?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    match number {
        0 => stdio::dup2_stdin(&nothing)?,
        1 => stdio::dup2_stdout(&nothing)?,
        _ => stdio::dup2_stderr(&nothing)?,
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifeline_ends_with_its_last_writer_and_not_before() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut ended = Lifeline(reader).watch().unwrap();
        rustix::io::write(&writer, b"still here").unwrap();
        assert_eq!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        drop(writer);
        assert_eq!(ended.blocking_recv(), Ok(()));
    }

    #[test]
    fn a_number_that_we_opened_ourselves_is_refused() {
        use std::os::fd::AsRawFd as _;
        let ours = File::open("/dev/null").unwrap();
        let number = u16::try_from(ours.as_raw_fd()).unwrap();
        let failure = Lifeline::take(number).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.to_string().contains("--lifeline-fd"), "{failure}");
    }
}
