//! What clients may still put into a sandbox (NS-16).
//!
//! The supervisor kills the commands of a sandbox whose files outgrow the limit. An upload is written by
//! the executor, which survives, so uploads are admitted here, piece by piece and before they are sent.
//! The layers are measured again when the last measurement is old, or when what was admitted since then
//! is not small beside what was left. Bytes on their way are not on the disk yet: of each upload as many
//! count twice as may be in buffers, or all of them where the executor keeps them in a file without a name.

use std::{
    io,
    path::{Component, Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_core::Stream;
use rustix::io::Errno;
use tokio::task::{JoinHandle, spawn_blocking};
use zareba_runtime::RuntimeError;
use zareba_wire::{
    ByteStream, UploadRoom,
    client::ClientError,
    files::{FileError, FileFailure},
};

use super::disk::{self, DiskLimit};
use crate::link::LinkError;

/// A measurement that is older counts no more, except that the next one waits [`REST`] times its duration.
const FRESH: Duration = Duration::from_secs(1);

/// Measuring takes a twentieth of the time at most.
const REST: u32 = 20;

/// Up to this part of what was left is admitted without measuring again.
const SMALL_PART: u64 = 16;

/// Bytes of one upload that can be in buffers between here and the disk: a batch of the executor, and what
/// its connection holds.
const BUFFERED_BYTES: u64 = 2 * 1024 * 1024;

/// What a file takes on the disk at least.
const BLOCK_BYTES: u64 = 4096;

/// How an upload is kept until it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spooled {
    /// In a file that a measurement finds.
    Named,
    /// In a file without a name.
    Unnamed,
}

/// The room that the files of one sandbox have.
#[derive(Debug)]
pub(crate) struct Room {
    layer: PathBuf,
    limit: DiskLimit,
    /// What the layers hold when they are new.
    base: DiskLimit,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    measured: Option<Measured>,
    /// Admitted since then.
    admitted: u64,
    files_admitted: u64,
    /// Admitted to uploads under way, and perhaps not where a measurement finds it.
    unsettled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    begun: Instant,
    took: Duration,
    left: DiskLimit,
}

/// How much a measurement may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// As its age allows.
    ByAge,
    /// It was made for this.
    Wholly,
}

/// What one upload was admitted. Its bytes are settled when it is dropped.
#[derive(Debug)]
struct Intake {
    room: Arc<Room>,
    spooled: Spooled,
    unsettled: u64,
}

impl Room {
    pub(super) fn new(layer: PathBuf, limit: DiskLimit, base: DiskLimit) -> Self {
        Self {
            layer,
            limit,
            base,
            state: Mutex::default(),
        }
    }

    /// Admits content that comes at once, as that of an action, for so many files and directories.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        bytes: u64,
        inodes: u64,
    ) -> Result<(), RuntimeError> {
        let mut intake = self.intake(Spooled::Named);
        let bytes = bytes.max(inodes.saturating_mul(BLOCK_BYTES));
        if intake.admits(bytes, inodes, Trust::ByAge) {
            return Ok(());
        }
        self.measured().await;
        match intake.admits(bytes, inodes, Trust::Wholly) {
            true => Ok(()),
            false => Err(self.is_full()),
        }
    }

    /// The content of an upload as far as there is room for it and for what is made at once, and whether
    /// there was for all.
    pub(crate) async fn gate(
        self: &Arc<Self>,
        content: ByteStream,
        spooled: Spooled,
        inodes: u64,
    ) -> Result<(ByteStream, Gate), RuntimeError> {
        self.admit(0, inodes).await?;
        let is_full = Arc::new(AtomicBool::new(false));
        let gated = Gated {
            content,
            intake: self.intake(spooled),
            waiting: None,
            is_full: Arc::clone(&is_full),
        };
        let room = Arc::clone(self);
        Ok((Box::pin(gated), Gate { room, is_full }))
    }

    /// What is left for an archive and all that is in it.
    pub(crate) async fn left(self: &Arc<Self>) -> UploadRoom {
        let measured = self.measured().await;
        let left = measured.map_or(DiskLimit::NOTHING, |measured| measured.left);
        UploadRoom {
            bytes: left.bytes,
            files: left.inodes,
        }
    }

    async fn measured(self: &Arc<Self>) -> Option<Measured> {
        let room = Arc::clone(self);
        // Of a measurement that failed nothing is known, and nothing admitted.
        spawn_blocking(move || room.measure()).await.ok()
    }

    fn measure(&self) -> Measured {
        let begun = Instant::now();
        let held = disk::measure(&self.layer);
        let mut state = self.state();
        let bytes = held.bytes.saturating_sub(self.base.bytes) + state.unsettled;
        let inodes = held.inodes.saturating_sub(self.base.inodes);
        let measured = Measured {
            begun,
            took: begun.elapsed(),
            left: DiskLimit {
                bytes: self.limit.bytes.saturating_sub(bytes),
                inodes: self.limit.inodes.saturating_sub(inodes),
            },
        };
        state.measured = Some(measured);
        state.admitted = 0;
        state.files_admitted = 0;
        measured
    }

    fn intake(self: &Arc<Self>, spooled: Spooled) -> Intake {
        Intake {
            room: Arc::clone(self),
            spooled,
            unsettled: 0,
        }
    }

    fn is_full(&self) -> RuntimeError {
        let (size, files) = (self.limit.bytes, self.limit.inodes);
        let message = format!(
            "the sandbox's files would outgrow their limit of {size} bytes or {files} files (`native.disk`, \
             `native.inodes`): remove some, or make a sandbox with a larger limit"
        );
        RuntimeError::File(FileError::new(FileFailure::Quota, message))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admits(&self, bytes: u64, files: u64, trust: Trust) -> bool {
        let Some(measured) = self.measured else {
            return false;
        };
        let bytes = self.admitted.saturating_add(bytes);
        let files = self.files_admitted.saturating_add(files);
        let left = measured.left;
        let is_within = |part: u64| bytes <= left.bytes / part && files <= left.inodes / part;
        let age = measured.begun.elapsed();
        match trust {
            Trust::Wholly => is_within(1),
            Trust::ByAge if age < measured.took * REST => is_within(1),
            Trust::ByAge => age < FRESH && is_within(SMALL_PART),
        }
    }
}

impl Intake {
    fn admits(&mut self, bytes: u64, files: u64, trust: Trust) -> bool {
        let mut state = self.room.state();
        if !state.admits(bytes, files, trust) {
            return false;
        }
        state.admitted += bytes;
        state.files_admitted += files;
        let unsettled = self.unsettled.saturating_add(bytes);
        let unsettled = match self.spooled {
            Spooled::Named => unsettled.min(BUFFERED_BYTES),
            Spooled::Unnamed => unsettled,
        };
        state.unsettled += unsettled - self.unsettled;
        self.unsettled = unsettled;
        true
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.unsettled = state.unsettled.saturating_sub(self.unsettled);
    }
}

/// The files and directories that an upload to this path makes at the most: all that it names.
pub(crate) fn inodes_of(path: &Path) -> u64 {
    let names = path.components();
    names
        .filter(|name| matches!(name, Component::Normal(_)))
        .count()
        .max(1) as u64
}

/// Tells whether an upload ended for want of room.
pub(crate) struct Gate {
    room: Arc<Room>,
    is_full: Arc<AtomicBool>,
}

impl Gate {
    /// What came of the upload: the other end only knows that it broke off.
    pub(crate) fn outcome<T>(&self, result: Result<T, RuntimeError>) -> Result<T, RuntimeError> {
        match result {
            Err(_) if self.is_full.load(Ordering::Acquire) => Err(self.room.is_full()),
            Err(error) if is_quota(&error) => Err(self.room.is_full()),
            result => result,
        }
    }
}

/// Whether the executor says that an archive holds more than it may.
fn is_quota(error: &RuntimeError) -> bool {
    let RuntimeError::Copy { source, .. } = error else {
        return false;
    };
    match source.downcast_ref::<LinkError>() {
        Some(LinkError::Request(ClientError::File(error))) => error.reason == FileFailure::Quota,
        _ => false,
    }
}

/// Content that ends with an error when there is no more room for it.
struct Gated {
    content: ByteStream,
    intake: Intake,
    /// A piece that waits for a measurement.
    waiting: Option<(Bytes, JoinHandle<Measured>)>,
    is_full: Arc<AtomicBool>,
}

impl Stream for Gated {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some((_, measuring)) = &mut this.waiting {
                let measured = ready!(Pin::new(measuring).poll(context));
                let Some((piece, _)) = this.waiting.take() else {
                    continue;
                };
                let length = piece.len() as u64;
                if measured.is_ok() && this.intake.admits(length, 0, Trust::Wholly) {
                    return Poll::Ready(Some(Ok(piece)));
                }
                this.is_full.store(true, Ordering::Release);
                return Poll::Ready(Some(Err(Errno::DQUOT.into())));
            }
            let piece = match ready!(this.content.as_mut().poll_next(context)) {
                Some(Ok(piece)) => piece,
                end => return Poll::Ready(end),
            };
            if this.intake.admits(piece.len() as u64, 0, Trust::ByAge) {
                return Poll::Ready(Some(Ok(piece)));
            }
            let room = Arc::clone(&this.intake.room);
            this.waiting = Some((piece, spawn_blocking(move || room.measure())));
        }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
