//! The body of an upload while it arrives: a file in the destination's directory.
//!
//! The whole body is here before anything else is touched, because a client may upload onto the
//! very file that it is reading.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid},
    io::Errno,
};
use zareba_wire::TransferError;

use super::{
    budget::{ArchiveLimits, Room},
    destination::Destination,
    failure::{invalid, os_error},
    staging::Staging,
    untar::untar,
    unzip::unzip,
};
use crate::{Owner, files::Reach};

/// Mode of an uploaded file that was not there before.
const FILE_MODE: u32 = 0o644;
/// Permission bits; the bits above them (setuid and the like) are never given to an upload.
pub(super) const PERMISSION_BITS: u32 = 0o777;
/// Largest body. The disk is the real limit; this one stops a client that never ends.
const BODY_BYTES_MAX: u64 = 64 << 30;

/// The archive formats that can be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Zip,
    Tar,
}

/// A spooled body. Dropping it removes every trace of the upload.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    length: u64,
    /// The name the client gave, one path component.
    file_name: String,
    /// The temporary name, as long as there is one.
    hidden: Option<OsString>,
    destination: Destination,
}

impl Spool {
    /// Opens the destination and an empty spool in it.
    pub(super) fn create(
        destination: &Path,
        file_name: String,
        owner: Owner,
        reach: &Arc<Reach>,
    ) -> Result<Self, TransferError> {
        let destination = Destination::open(destination, &file_name, owner, reach)?;
        let hidden = hidden_name();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&destination.directory, &hidden, flags, mode)
            .map_err(|error| os_error(error, &destination.path.join(&file_name)))?;
        Ok(Self {
            file: file.into(),
            length: 0,
            file_name,
            hidden: Some(hidden),
            destination,
        })
    }

    /// Takes the name away, so that not even a crash leaves the spool behind. For archives,
    /// which are only read.
    pub(super) fn unnamed(mut self) -> Result<Self, TransferError> {
        if let Some(hidden) = self.hidden.take() {
            rustix::fs::unlinkat(&self.destination.directory, &hidden, AtFlags::empty())
                .map_err(|error| os_error(error, &self.target()))?;
        }
        Ok(self)
    }

    /// Adds a piece of the body.
    pub(super) fn write(&mut self, pieces: &[Bytes]) -> Result<(), TransferError> {
        for piece in pieces {
            self.length += piece.len() as u64;
            if self.length > BODY_BYTES_MAX {
                return Err(invalid(format!(
                    "upload is larger than {BODY_BYTES_MAX} bytes"
                )));
            }
            self.file
                .write_all(piece)
                .map_err(|error| os_error(error, &self.target()))?;
        }
        Ok(())
    }

    /// Gives the file its name in one step. A link of that name is replaced, not written
    /// through; a file of that name leaves its mode and owner to the new one.
    pub(super) fn store(mut self) -> Result<(), TransferError> {
        self.rename()
            .map_err(|error| os_error(error, &self.target()))?;
        self.destination.keep();
        Ok(())
    }

    /// Unpacks the spooled archive into the destination, wholly or not at all.
    pub(super) fn unpack(
        mut self,
        format: Format,
        limits: &ArchiveLimits,
        room: Option<Room>,
    ) -> Result<(), TransferError> {
        let label = self.target();
        let mut staging = Staging::create(&self.destination)?;
        let budget = limits.budget(self.length).within(room)?;
        match format {
            Format::Zip => unzip(&self.file, &label, budget, &mut staging)?,
            Format::Tar => untar(&self.file, &label, budget, &mut staging)?,
        }
        staging.publish()?;
        self.destination.keep();
        Ok(())
    }

    fn target(&self) -> PathBuf {
        self.destination.path.join(&self.file_name)
    }

    fn rename(&mut self) -> Result<(), Errno> {
        let directory = &self.destination.directory;
        let name = OsStr::new(&self.file_name);
        let mode = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(old) if FileType::from_raw_mode(old.st_mode) == FileType::RegularFile => {
                let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                // Only root can give files away; for others the new file is simply theirs.
                let _ = rustix::fs::fchown(&self.file, Some(uid), Some(gid));
                old.st_mode & PERMISSION_BITS
            }
            _ => {
                self.destination.owner.give(&self.file)?;
                FILE_MODE
            }
        };
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?;
        let Some(hidden) = self.hidden.as_ref() else {
            return Err(Errno::NOENT);
        };
        rustix::fs::renameat(directory, hidden, directory, name)?;
        self.hidden = None;
        Ok(())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // Nothing more can be done here, and the name says whose file it is.
            let _ = rustix::fs::unlinkat(&self.destination.directory, hidden, AtFlags::empty());
        }
    }
}

/// A hidden name that nobody has: where half-done work lives until it is whole.
pub(super) fn hidden_name() -> OsString {
    format!(".zareba-upload-{:016x}", rand::random::<u64>()).into()
}
