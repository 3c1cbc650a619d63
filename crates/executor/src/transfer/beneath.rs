//! Steps inside an open directory that cannot lead out of it.
//!
//! `openat2` (Linux 5.6) does the resolving, so there is no moment between a check and its use.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// Whether links on the way are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// Followed as long as they stay inside.
    Inside,
    /// Refused, wherever they lead.
    Refused,
}

/// Opens what is at this relative path inside the directory; an empty path is the directory.
pub(super) fn open(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = match links {
        Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    };
    rustix::fs::openat2(
        directory,
        path,
        flags | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// The names in a directory and what they are, in no order, without `.` and `..`.
pub(super) fn list(directory: impl AsFd) -> io::Result<Vec<(OsString, FileType)>> {
    let directory = directory.as_fd();
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say; an entry that went away is left out.
            FileType::Unknown => match kind_of(directory, name) {
                Ok(kind) => kind,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        names.push((name.to_owned(), kind));
    }
    Ok(names)
}

/// What is at this name, links not followed.
pub(super) fn kind_of(directory: impl AsFd, name: &OsStr) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// A hidden name that nobody has: where half-done work lives until it is whole.
pub(super) fn hidden_name() -> OsString {
    format!(".zareba-upload-{:016x}", rand::random::<u64>()).into()
}

/// Removes a directory and all that is in it, without following links and without recursion.
pub(super) fn remove_tree(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let root = open(&parent, Path::new(name), flags, Links::Refused)?;
    let mut directories = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(directory) = directories.get(next).cloned() {
        next += 1;
        let opened = open(&root, &directory, flags, Links::Refused)?;
        for (name, kind) in list(&opened)? {
            if kind == FileType::Directory {
                directories.push(directory.join(name));
            } else {
                rustix::fs::unlinkat(&opened, name, AtFlags::empty())?;
            }
        }
    }
    // A directory is found after the one it is in, so the reverse order empties each in time.
    for directory in directories.iter().skip(1).rev() {
        rustix::fs::unlinkat(&root, directory, AtFlags::REMOVEDIR)?;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}
