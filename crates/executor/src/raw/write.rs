//! Writing: a stream goes into a draft beside the file, which then takes the file's name (FA-5).

use std::{future::poll_fn, io::Write as _, sync::Arc};

use bytes::Bytes;
use rustix::{
    fs::{Stat, fdatasync, fstat},
    io::Errno,
};
use zareba_protocol::python_repr::of_str as quoted;
use zareba_wire::{
    ByteStream,
    files::{Expected, FileError, FileFailure, FileStatus, Parents, WriteRequest},
};

use super::{
    Shared,
    failure::{io, is_directory, os, refused},
    off_thread,
    status::{hashed, status_of},
};
use crate::files::{Draft, NEW_FILE_MODE, OpenFile, Opened, Slot};

/// Bytes that are gathered before a thread is asked to write them. A slow client thus occupies
/// memory of this size and no thread.
const BATCH_BYTES: usize = 1024 * 1024;

/// Permission bits that a request may set. What is written by somebody else must not run as
/// whoever owns it.
const MODE_BITS: u32 = 0o777;

/// Dropped before the content has arrived, it leaves nothing behind; after that the write is
/// completed all the same.
pub(super) async fn write(
    shared: Arc<Shared>,
    request: WriteRequest,
    mut content: ByteStream,
) -> Result<FileStatus, FileError> {
    check_mode(request.mode)?;
    let mut pending = off_thread({
        let shared = Arc::clone(&shared);
        move || Pending::begin(&shared, request)
    })
    .await?;
    let (mut batch, mut batch_bytes) = (Vec::new(), 0);
    while let Some(piece) = poll_fn(|context| content.as_mut().poll_next(context)).await {
        let piece = piece.map_err(|error| {
            let message = format!("the content broke off: {error}");
            FileError::new(FileFailure::BrokenOff, message)
        })?;
        batch_bytes += piece.len();
        batch.push(piece);
        if batch_bytes >= BATCH_BYTES {
            let full = std::mem::take(&mut batch);
            batch_bytes = 0;
            pending = off_thread(move || pending.append(&full)).await?;
        }
    }
    drop(content);
    off_thread(move || pending.append(&batch)?.finish(&shared)).await
}

/// Refuses permissions that nobody may set from outside.
pub(super) fn check_mode(mode: Option<u32>) -> Result<(), FileError> {
    match mode {
        Some(mode) if mode & !MODE_BITS != 0 => {
            let message = format!("the mode {mode:o} has more bits than {MODE_BITS:o}");
            Err(FileError::new(FileFailure::InvalidRequest, message))
        }
        _ => Ok(()),
    }
}

/// A file that is being written.
struct Pending {
    slot: Arc<Slot>,
    draft: Draft<Arc<Slot>>,
    request: WriteRequest,
}

impl Pending {
    fn begin(shared: &Shared, request: WriteRequest) -> Result<Self, FileError> {
        let path = shared.locate(&request.path)?;
        let slot = match request.parents {
            Parents::Require => shared.workspace.slot(&path),
            Parents::Make => shared.workspace.slot_with_parents(&path),
        };
        let slot = Arc::new(slot.map_err(refused)?);
        // Told now rather than after all of the content has come.
        expect(&slot, present(&slot)?, request.expected.as_ref())?;
        // Nobody else may look into it before it is what it shall be.
        let draft = Draft::create(Arc::clone(&slot), 0o600);
        let draft = draft.map_err(|errno| os(errno, slot.shown()))?;
        Ok(Self {
            slot,
            draft,
            request,
        })
    }

    fn append(mut self, batch: &[Bytes]) -> Result<Self, FileError> {
        for piece in batch {
            let written = self.draft.file.write_all(piece);
            written.map_err(|error| io(&error, self.slot.shown()))?;
        }
        Ok(self)
    }

    /// Puts the draft into its place. Those who write the same file through us wait for each
    /// other, so that what was expected is what is replaced.
    fn finish(mut self, shared: &Shared) -> Result<FileStatus, FileError> {
        let slot = Arc::clone(&self.slot);
        let _only_writer = shared.workspace.lock(&slot).map_err(refused)?;
        expect(&slot, present(&slot)?, self.request.expected.as_ref())?;
        match self.put(shared) {
            Ok(stat) => Ok(status_of(&stat)),
            Err(Errno::EXIST) => Err(conflict(&slot)),
            Err(errno) => Err(os(errno, slot.shown())),
        }
    }

    fn put(&mut self, shared: &Shared) -> Result<Stat, Errno> {
        let old = self.slot.stat().ok();
        let mode = match (self.request.mode, &old) {
            (Some(mode), _) => mode,
            (None, Some(old)) => old.st_mode & MODE_BITS,
            (None, None) => NEW_FILE_MODE,
        };
        let given = match &old {
            Some(old) => self.draft.belong_to(old),
            None => shared.workspace.owner().give(&self.draft.file),
        };
        // Whoever may replace a file of somebody else has it then.
        given.or_else(|errno| match errno {
            Errno::PERM => Ok(()),
            errno => Err(errno),
        })?;
        self.draft.permit(mode)?;
        fdatasync(&self.draft.file)?;
        match self.request.expected {
            Some(Expected::Absent) => self.draft.rename_to_free_name()?,
            _ => self.draft.rename_over()?,
        }
        fstat(&self.draft.file)
    }
}

/// The regular file in a place; `None` when nothing is there.
fn present(slot: &Slot) -> Result<Option<OpenFile>, FileError> {
    match slot.open() {
        Ok(None) => Ok(None),
        Ok(Some(Opened::File(file))) => Ok(Some(file)),
        Ok(Some(Opened::Directory(_))) => Err(is_directory(slot.shown())),
        // One that may be replaced need not be readable.
        Err(failure) if failure.errno() == Some(Errno::ACCESS) => Ok(None),
        Err(failure) => Err(refused(failure)),
    }
}

/// Holds what is there against what the client saw last (FA-6).
fn expect(
    slot: &Slot,
    present: Option<OpenFile>,
    expected: Option<&Expected>,
) -> Result<(), FileError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let current = match (present, expected) {
        (None, Expected::Absent) => return Ok(()),
        (None, _) => return Err(conflict(slot)),
        (Some(file), Expected::Sha256(_)) => hashed(file, slot.shown())?,
        (Some(file), _) => status_of(&file.stat),
    };
    let matches = match expected {
        Expected::Absent => false,
        Expected::Version(version) => *version == current.version,
        Expected::Sha256(digits) => current.sha256.as_ref() == Some(digits),
    };
    if matches {
        return Ok(());
    }
    Err(conflict(slot).with_current(current))
}

fn conflict(slot: &Slot) -> FileError {
    let shown = quoted(slot.shown());
    let message = format!("{shown} is not what was expected; look at it again before writing");
    FileError::new(FileFailure::Conflict, message)
}
