//! What one archive may grow to.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::io::Errno;
use zareba_wire::{TransferError, UploadRoom};

use super::failure::{bad_archive, os_error};

/// What a file takes on the disk at least.
const BLOCK_BYTES: u64 = 4096;

/// The caps on an archive that is unpacked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveLimits {
    /// Entries at the most.
    pub(super) entries: u64,
    /// Bytes of content at the most.
    pub(super) bytes: u64,
    /// Content may be this many times the size of the archive.
    pub(super) ratio: u64,
    /// Up to here the ratio does not count: small archives of empty text pack very well.
    pub(super) ratio_free_bytes: u64,
}

impl ArchiveLimits {
    /// The caps in force for uploads.
    pub(super) const UPLOAD: Self = Self {
        entries: 100_000,
        bytes: 64 << 30,
        ratio: 200,
        ratio_free_bytes: 16 << 20,
    };

    /// The budget of one archive of this size.
    pub(super) fn budget(&self, archive_bytes: u64) -> Budget {
        let by_ratio = archive_bytes
            .saturating_mul(self.ratio)
            .max(self.ratio_free_bytes);
        Budget {
            limits: *self,
            archive_bytes,
            entries: 0,
            directories: 0,
            bytes_left: by_ratio.min(self.bytes),
            packed_left: archive_bytes,
            room: None,
        }
    }
}

/// What is left for one archive; every entry and every byte is charged before it is written.
#[derive(Debug)]
pub(super) struct Budget {
    limits: ArchiveLimits,
    archive_bytes: u64,
    entries: u64,
    directories: u64,
    bytes_left: u64,
    packed_left: u64,
    room: Option<Room>,
}

/// What all archives have unpacked here, of which those count that are unpacked at once with another.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    bytes: Arc<AtomicU64>,
    files: Arc<AtomicU64>,
}

/// What is left on the disk for an archive and others that are unpacked meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Room {
    taken: Taken,
    /// What `taken` may come to.
    bytes_max: u64,
    files_max: u64,
    /// What the room is for.
    label: PathBuf,
}

impl Taken {
    /// The room that an upload has from now on.
    pub(super) fn room(&self, room: UploadRoom, label: PathBuf) -> Room {
        Room {
            bytes_max: room
                .bytes
                .saturating_add(self.bytes.load(Ordering::Acquire)),
            files_max: room
                .files
                .saturating_add(self.files.load(Ordering::Acquire)),
            taken: self.clone(),
            label,
        }
    }
}

impl Room {
    fn charge(&self, bytes: u64, files: u64) -> Result<(), TransferError> {
        let all_bytes = self.taken.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let all_files = self.taken.files.fetch_add(files, Ordering::AcqRel) + files;
        match all_bytes <= self.bytes_max && all_files <= self.files_max {
            true => Ok(()),
            false => Err(os_error(Errno::DQUOT, &self.label)),
        }
    }
}

impl Budget {
    /// The same, within what is left on the disk for the archive and what is in it.
    pub(super) fn within(mut self, room: Option<Room>) -> Result<Self, TransferError> {
        if let Some(room) = &room {
            room.charge(self.archive_bytes, 0)?;
        }
        self.room = room;
        Ok(self)
    }

    /// The size of the archive itself.
    pub(super) fn archive_bytes(&self) -> u64 {
        self.archive_bytes
    }

    /// Refuses an archive that announces too many entries, before the first is unpacked.
    pub(super) fn announce(&self, entries: u64) -> Result<(), TransferError> {
        if entries > self.limits.entries {
            return Err(bad_archive(format!(
                "archive has more than {} entries",
                self.limits.entries
            )));
        }
        Ok(())
    }

    /// Charges one entry.
    pub(super) fn charge_entry(&mut self) -> Result<(), TransferError> {
        self.entries += 1;
        self.announce(self.entries)?;
        match &self.room {
            Some(room) => room.charge(BLOCK_BYTES, 1),
            None => Ok(()),
        }
    }

    /// Charges a directory that no entry names but the path of one implies: a short entry can imply
    /// as many as its path has names.
    pub(super) fn charge_directory(&mut self) -> Result<(), TransferError> {
        self.directories += 1;
        if self.directories > self.limits.entries {
            return Err(bad_archive(format!(
                "archive has more than {} directories",
                self.limits.entries
            )));
        }
        match &self.room {
            Some(room) => room.charge(BLOCK_BYTES, 1),
            None => Ok(()),
        }
    }

    /// Charges content that is about to be written.
    pub(super) fn charge_bytes(&mut self, bytes: u64) -> Result<(), TransferError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                match &self.room {
                    Some(room) => room.charge(bytes, 0),
                    None => Ok(()),
                }
            }
            None if self.archive_bytes.saturating_mul(self.limits.ratio) < self.limits.bytes => {
                Err(bad_archive(format!(
                    "archive unpacks to more than {} times its size",
                    self.limits.ratio
                )))
            }
            None => Err(bad_archive(format!(
                "archive unpacks to more than {} bytes",
                self.limits.bytes
            ))),
        }
    }

    /// Charges the packed form of an entry: entries that share bytes add up to more than the
    /// archive is long, and are the trick behind the worst archive bombs.
    pub(super) fn charge_packed(&mut self, bytes: u64) -> Result<(), TransferError> {
        self.packed_left = self
            .packed_left
            .checked_sub(bytes)
            .ok_or_else(|| bad_archive("archive has entries that overlap"))?;
        Ok(())
    }
}
