//! One control-group directory, held open, and the few things that are done with one.
//!
//! Files are opened relative to the held directory, so a group that was removed and made again
//! under the same name is never mistaken for the one that was meant.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags},
    io::Errno,
};

use super::CgroupError;

/// More than any control file has. A longer list of processes is cut at a line; whoever acts on
/// it looks again until it is empty.
const READ_BYTES_MAX: u64 = 1 << 20;

/// What most of them are shorter than.
const READ_BYTES: usize = 4096;

/// One page: what the kernel says about limits at a time, tens of devices included.
const EXCHANGE_BYTES_MAX: usize = 4096;

/// How deep groups inside a group are followed; ours are two deep.
const DEPTH_MAX: usize = 8;

/// How many groups inside one group are listed at a time.
const CHILDREN_MAX: usize = 10_000;

/// The file that lists the processes of a group and takes new ones.
pub(super) const PROCESSES: &str = "cgroup.procs";

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);

/// A control-group directory.
#[derive(Debug)]
pub(super) struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let descriptor = rustix::fs::openat(CWD, path, DIRECTORY_FLAGS, Mode::empty())?;
        Ok(Self {
            descriptor,
            path: path.to_owned(),
        })
    }

    pub(super) fn child(&self, name: &str) -> io::Result<Self> {
        let descriptor =
            rustix::fs::openat(&self.descriptor, name, DIRECTORY_FLAGS, Mode::empty())?;
        Ok(Self {
            descriptor,
            path: self.path.join(name),
        })
    }

    /// Makes a group inside this one; one that is there already is an error.
    pub(super) fn create_child(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o755))?;
        self.child(name)
    }

    /// The group inside this one, made when it is not there.
    pub(super) fn ensure_child(&self, name: &str) -> io::Result<Self> {
        match self.create_child(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.child(name),
            result => result,
        }
    }

    pub(super) fn remove_child(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.descriptor,
            name,
            AtFlags::REMOVEDIR,
        )?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn has(&self, file: &str) -> bool {
        rustix::fs::statat(&self.descriptor, file, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(super) fn open_file(&self, file: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(
            &self.descriptor,
            file,
            flags,
            Mode::empty(),
        )?)
    }

    /// The contents of a control file, without the line end.
    pub(super) fn read(&self, file: &str) -> io::Result<String> {
        let opened = File::from(self.open_file(file, OFlags::RDONLY)?);
        // To find out the size, which the kernel does not tell, would take more calls.
        let mut bytes = Vec::with_capacity(READ_BYTES);
        opened.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == READ_BYTES_MAX {
            let whole = bytes
                .iter()
                .rposition(|&byte| byte == b'\n')
                .unwrap_or_default();
            bytes.truncate(whole);
        }
        trimmed(bytes)
    }

    /// Writes a value in one call, as the kernel takes it.
    pub(super) fn write(&self, file: &str, value: &str) -> io::Result<()> {
        write_whole(
            &self.open_file(file, OFlags::WRONLY | OFlags::TRUNC)?,
            value,
        )
    }

    /// Writes a value and reads what the kernel then says, a limit and not a list.
    pub(super) fn exchange(&self, file: &str, value: &str) -> io::Result<String> {
        let opened = self.open_file(file, OFlags::RDWR | OFlags::TRUNC)?;
        write_whole(&opened, value)?;
        let mut bytes = vec![0; EXCHANGE_BYTES_MAX];
        let length = rustix::io::pread(&opened, &mut bytes[..], 0)?;
        bytes.truncate(length);
        trimmed(bytes)
    }

    /// The names of the groups directly inside this one.
    pub(super) fn children(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if entry.file_type() == FileType::Directory && name != "." && name != ".." {
                names.push(name.to_owned());
            }
            if names.len() == CHILDREN_MAX {
                break;
            }
        }
        Ok(names)
    }

    /// The processes directly in this group; 0 stands for one of a process namespace that
    /// cannot be seen from here. A group that is gone has none.
    pub(super) fn processes(&self) -> io::Result<Vec<i32>> {
        match self.read(PROCESSES) {
            Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
            Err(error) if is_gone(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The processes in this group and in all groups inside it.
    pub(super) fn all_processes(&self) -> io::Result<Vec<i32>> {
        let mut found = Vec::new();
        self.collect_processes(DEPTH_MAX, &mut found)?;
        Ok(found)
    }

    fn collect_processes(&self, depth: usize, found: &mut Vec<i32>) -> io::Result<()> {
        found.extend(self.processes()?);
        for child in self.existing_children(depth)? {
            child.collect_processes(depth - 1, found)?;
        }
        Ok(())
    }

    /// Removes the groups inside this one, the innermost first.
    pub(super) fn remove_children(&self) -> io::Result<()> {
        self.remove_below(DEPTH_MAX)
    }

    fn remove_below(&self, depth: usize) -> io::Result<()> {
        for child in self.existing_children(depth)? {
            child.remove_below(depth - 1)?;
            let Some(name) = child.path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            match self.remove_child(name) {
                Err(error) if !is_gone(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The groups inside this one that are still there when they are opened.
    fn existing_children(&self, depth: usize) -> io::Result<Vec<Self>> {
        if depth == 0 {
            return Ok(Vec::new());
        }
        let mut children = Vec::new();
        let names = match self.children() {
            Err(error) if is_gone(&error) => return Ok(children),
            names => names?,
        };
        for name in names {
            match self.child(&name) {
                Ok(child) => children.push(child),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(children)
    }

    /// An error about a file of this directory.
    pub(super) fn failure(
        &self,
        deed: &'static str,
        file: &str,
    ) -> impl Fn(io::Error) -> CgroupError + use<> {
        let path = if file.is_empty() {
            self.path.clone()
        } else {
            self.path.join(file)
        };
        move |source| CgroupError::Io {
            deed,
            path: path.clone(),
            source,
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Truncation, with which files are opened for this, means nothing to the kernel's files and
/// lets plain ones stand in for them.
fn write_whole(file: &OwnedFd, value: &str) -> io::Result<()> {
    match rustix::io::write(file, value.as_bytes())? {
        written if written == value.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn trimmed(bytes: Vec<u8>) -> io::Result<String> {
    let mut text = String::from_utf8(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// Whether an error says that the group was removed: by name, or under a held descriptor.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NODEV))
}

/// The value after `key` in a control file of `key value` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .and_then(|value| value.trim().parse().ok())
}
