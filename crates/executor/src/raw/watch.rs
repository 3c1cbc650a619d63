//! Watching a directory: the kernel's notices become changes that are told in order.
//!
//! One thread per watch, which sleeps until there is a notice or its reader is gone. It reads no
//! more notices while its reader is behind, so that the kernel's own bounded queue is the buffer;
//! when that overflows the reader is told and the tree is looked at again.

mod notices;
mod tree;

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use zareba_wire::files::{ChangeStream, FileChange, FileError, FileFailure, WatchRequest};

use self::{notices::Notices, tree::Tree};
use super::{
    Shared, WATCHES_MAX,
    failure::{io as io_failure, os},
    off_thread,
};

/// Changes that may wait for the reader.
const CHANGES_WAITING_MAX: usize = 256;

/// How long the second half of a rename is waited for. The kernel does not promise that both
/// halves come together, nor that there is a second one (inotify(7)).
const RENAME_PATIENCE: Duration = Duration::from_millis(10);

type Told = io::Result<FileChange>;

pub(super) async fn watch(
    shared: Arc<Shared>,
    request: WatchRequest,
) -> Result<ChangeStream, FileError> {
    let permit = Arc::clone(&shared.watches).try_acquire_owned();
    let permit = permit.map_err(|_| {
        let message = format!("{WATCHES_MAX} directories are watched already; end one first");
        FileError::new(FileFailure::Busy, message)
    })?;
    off_thread(move || {
        let shown = request.path.clone();
        let mut tree = Tree::open(shared, &request)?;
        let first = tree.look();
        let (parting, reader) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| os(errno, &shown))?;
        let (sender, changes) = mpsc::channel(CHANGES_WAITING_MAX);
        let watcher = Watcher {
            notices: Notices::new(tree),
            sender,
            parting,
            _permit: permit,
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watcher.run(first))
            .map_err(|error| io_failure(&error, &shown))?;
        let stream = Changes {
            changes,
            _reader: reader,
        };
        Ok(Box::pin(stream) as ChangeStream)
    })
    .await
}

/// What the thread of a watch holds.
struct Watcher {
    notices: Notices,
    sender: mpsc::Sender<Told>,
    /// Hung up on when the reader is gone.
    parting: OwnedFd,
    _permit: OwnedSemaphorePermit,
}

/// What ended a wait.
enum Woken {
    Notices,
    Time,
    End,
}

impl Watcher {
    /// Tells changes until the directory is gone or nobody listens any more.
    fn run(mut self, first: Vec<FileChange>) {
        let mut changes = Ok(first);
        loop {
            match changes {
                Ok(changes) => {
                    if !self.tell(changes) || self.notices.is_gone() {
                        return;
                    }
                }
                Err(error) => {
                    // Nobody may be there to hear it.
                    let _ = self.sender.blocking_send(Err(error));
                    return;
                }
            }
            changes = match self.wait() {
                Ok(Woken::Notices) => self.notices.read(),
                Ok(Woken::Time) => Ok(self.notices.give_up_waiting()),
                Ok(Woken::End) => return,
                Err(errno) => Err(errno.into()),
            };
        }
    }

    /// False when nobody listens any more.
    fn tell(&self, changes: Vec<FileChange>) -> bool {
        changes
            .into_iter()
            .all(|change| self.sender.blocking_send(Ok(change)).is_ok())
    }

    fn wait(&self) -> Result<Woken, Errno> {
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: RENAME_PATIENCE.subsec_nanos().into(),
        };
        let patience = self.notices.is_half_renamed().then_some(&patience);
        let handle = self.notices.handle();
        let mut sources = [
            PollFd::new(&*handle, PollFlags::IN),
            PollFd::new(&self.parting, PollFlags::IN),
        ];
        loop {
            match poll(&mut sources, patience) {
                Ok(0) => return Ok(Woken::Time),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let [_, parting] = &sources;
        Ok(match parting.revents().is_empty() {
            true => Woken::Notices,
            false => Woken::End,
        })
    }
}

/// What the thread tells, as a stream. Dropping it ends the thread.
struct Changes {
    changes: mpsc::Receiver<Told>,
    _reader: OwnedFd,
}

impl Stream for Changes {
    type Item = Told;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.changes.poll_recv(cx)
    }
}
