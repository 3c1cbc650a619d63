//! Reading a process through a descriptor of its directory.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, OwnedFd},
    sync::OnceLock,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    process::Pid,
};

use super::{
    error::ReadBackError,
    identity::{IdMap, NamespaceId, NamespaceKind, Namespaces},
    limits::{self, ProcessLimit},
    status::Status,
};

/// The kernel's `status` is about 1.5 KiB, and maps at most 340 lines of 33 bytes.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// A line of the table of mounts is rarely longer than a page, and a sandbox has a few dozen.
const MOUNTS_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What most of these files fit into: the kernel does not tell their size, and to find it out piece
/// by piece takes a call for each.
const READ_BYTES: usize = 8 * 1024;

/// A process, held by its directory in `/proc`: never another one with the same number.
#[derive(Debug)]
pub struct ProcessDirectory {
    directory: OwnedFd,
}

/// Everything that can be read back of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its rights.
    pub status: Status,
    /// Who its users are.
    pub users: IdMap,
    /// Who its groups are.
    pub groups: IdMap,
    /// Where it is.
    pub namespaces: Namespaces,
}

impl ProcessDirectory {
    /// Takes hold of a process by its number, in a `/proc` that the caller has opened. The number
    /// must be that of a child that has not been waited for, or it may be somebody else's already.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn open(proc: impl AsFd, pid: Pid) -> Result<Self, ReadBackError> {
        let number = pid.as_raw_nonzero().get();
        open_directory(&proc, &number.to_string()).map_err(|error| ReadBackError::OpenProcess {
            pid: number,
            source: error.into(),
        })
    }

    /// Takes hold of the calling process, to compare with.
    ///
    /// # Errors
    /// When this is not a `/proc`.
    pub fn open_self(proc: impl AsFd) -> Result<Self, ReadBackError> {
        let own = rustix::process::getpid();
        open_directory(&proc, "self").map_err(|error| ReadBackError::OpenProcess {
            pid: own.as_raw_nonzero().get(),
            source: error.into(),
        })
    }

    /// Where the calling process is. Asked for once: a program that moves to another namespace moves
    /// there for good, and before it asks.
    pub(crate) fn own_namespaces(proc: impl AsFd) -> Result<&'static Namespaces, ReadBackError> {
        static OWN: OnceLock<Namespaces> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(own);
        }
        let own = Self::open_self(proc)?.namespaces()?;
        Ok(OWN.get_or_init(|| own))
    }

    /// Reads everything.
    ///
    /// # Errors
    /// When the process has ended, may not be looked at, or is described in an unknown way.
    pub fn facts(&self) -> Result<ProcessFacts, ReadBackError> {
        Ok(ProcessFacts {
            status: self.status()?,
            users: IdMap::parse("uid_map", &self.read("uid_map")?)?,
            groups: IdMap::parse("gid_map", &self.read("gid_map")?)?,
            namespaces: self.namespaces()?,
        })
    }

    /// Its rights.
    ///
    /// # Errors
    /// When the process has ended, or is described in an unknown way.
    pub fn status(&self) -> Result<Status, ReadBackError> {
        Status::parse(&self.read("status")?)
    }

    /// Where it is.
    ///
    /// # Errors
    /// When the process has ended, or may not be looked at: this takes the right to trace it.
    pub fn namespaces(&self) -> Result<Namespaces, ReadBackError> {
        let mut ids = [NamespaceId {
            device: 0,
            inode: 0,
        }; 7];
        for (id, kind) in ids.iter_mut().zip(NamespaceKind::ALL) {
            let file = kind.file();
            // Follows the link: what is looked at is the namespace, not its name.
            let stat =
                rustix::fs::statat(&self.directory, file, AtFlags::empty()).map_err(|error| {
                    ReadBackError::ReadFile {
                        file,
                        source: error.into(),
                    }
                })?;
            *id = NamespaceId {
                device: stat.st_dev,
                inode: stat.st_ino,
            };
        }
        Ok(Namespaces { ids })
    }

    /// Its limits, as the kernel lists them.
    ///
    /// # Errors
    /// When the process has ended, or a limit is written in an unknown way.
    pub fn limits(&self) -> Result<Vec<ProcessLimit>, ReadBackError> {
        limits::parse(&self.read("limits")?)
    }

    /// Its mounts, one a line.
    pub(super) fn mount_table(&self) -> Result<Vec<u8>, ReadBackError> {
        self.read_bytes("mountinfo", MOUNTS_MAX_BYTES)
    }

    fn read(&self, file: &'static str) -> Result<String, ReadBackError> {
        let bytes = self.read_bytes(file, FILE_MAX_BYTES)?;
        String::from_utf8(bytes).map_err(|error| ReadBackError::ReadFile {
            file,
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        })
    }

    fn read_bytes(&self, file: &'static str, limit_bytes: u64) -> Result<Vec<u8>, ReadBackError> {
        let refused = |source| ReadBackError::ReadFile { file, source };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = rustix::fs::openat(&self.directory, file, flags, Mode::empty())
            .map_err(|error| refused(error.into()))?;
        let mut bytes = Vec::with_capacity(READ_BYTES);
        let read = File::from(opened)
            .take(limit_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(refused)?;
        if read as u64 > limit_bytes {
            return Err(ReadBackError::TooLong { file, limit_bytes });
        }
        Ok(bytes)
    }
}

fn open_directory(proc: &impl AsFd, name: &str) -> rustix::io::Result<ProcessDirectory> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(proc, name, flags, Mode::empty())?;
    Ok(ProcessDirectory { directory })
}
