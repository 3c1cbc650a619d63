//! Steps inside an open directory: reading its names, making and removing what is in it.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        Access, AtFlags, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags, accessat,
        fchmod, fstat, mkdirat, openat, statat, statx, unlinkat,
    },
    io::Errno,
};

use super::beneath::{Links, open_beneath};
use crate::owner::Owner;

/// Opening like this waits for no pipe, takes no terminal, and no child inherits it.
pub(crate) const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How directories come to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewDirectory {
    pub(crate) owner: Owner,
    pub(crate) mode: DirectoryMode,
}

/// Who may use a new directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectoryMode {
    /// All, as far as the process's umask lets them, as with every other program's directories.
    ByUmask,
    /// These bits.
    Exactly(u32),
}

/// The names in a directory and what they are, in no order, without `.` and `..`; links are
/// not followed. An entry that went away meanwhile is left out.
pub(crate) fn entries(
    directory: impl AsFd,
) -> Result<impl Iterator<Item = Result<(OsString, FileType), Errno>>, Errno> {
    let listed = Dir::read_from(&directory)?;
    Ok(listed.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return Some(Err(errno)),
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            return None;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match kind_of(&directory, name) {
                Ok(kind) => kind,
                Err(Errno::NOENT) => return None,
                Err(errno) => return Some(Err(errno)),
            },
            kind => kind,
        };
        Some(Ok((name.to_owned(), kind)))
    }))
}

/// What is at this name, links not followed.
pub(crate) fn kind_of(directory: impl AsFd, name: &OsStr) -> Result<FileType, Errno> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Makes a directory and opens it. Owner and mode are set on the opened one; when that fails
/// there is no directory.
pub(crate) fn make_directory(
    parent: impl AsFd,
    name: &OsStr,
    new: NewDirectory,
) -> Result<OwnedFd, Errno> {
    let mode = match new.mode {
        DirectoryMode::ByUmask => Mode::RWXU | Mode::RWXG | Mode::RWXO,
        DirectoryMode::Exactly(_) => Mode::RWXU,
    };
    mkdirat(&parent, name, mode)?;
    open_new(&parent, name, new).inspect_err(|_| {
        // The first failure is the one to tell.
        let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
    })
}

fn open_new(parent: impl AsFd, name: &OsStr, new: NewDirectory) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty())?;
    new.owner.give(&directory)?;
    if let DirectoryMode::Exactly(mode) = new.mode {
        // After the change of owner, which takes bits away.
        fchmod(&directory, Mode::from_raw_mode(mode))?;
    }
    Ok(directory)
}

/// Removes a directory and its contents, without following links and without recursion.
///
/// A mount point cannot be removed, nor what is in a directory that may not be written. The whole tree is
/// searched for both first, so that `EBUSY` and `EACCES` mean that nothing was removed.
pub(crate) fn remove_tree(parent: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    if is_mount_point(&parent, name)? {
        return Err(Errno::BUSY);
    }
    require_removable(&parent)?;
    let root = open_beneath(&parent, Path::new(name), DIRECTORY, Links::Refused)?;
    let directories = removable_directories(&root)?;
    // A directory is found after the one it is in, so the reverse order empties each in time.
    for directory in directories.iter().rev() {
        let opened = open_beneath(&root, directory, DIRECTORY, Links::Refused)?;
        // All names first: removing while reading may skip some.
        let listed: Vec<_> = entries(&opened)?.collect::<Result<_, _>>()?;
        for (name, kind) in listed {
            // Directories below this one are gone by now, but for one that was made in between.
            let flags = match kind {
                FileType::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            unlinkat(&opened, name, flags)?;
        }
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Refuses a directory whose entries may not be removed.
fn require_removable(directory: impl AsFd) -> Result<(), Errno> {
    accessat(
        directory,
        ".",
        Access::WRITE_OK | Access::EXEC_OK,
        AtFlags::empty(),
    )
}

/// The paths of all directories in a tree, parents first, the empty path for its root. `EBUSY`
/// when a file or directory in it is a mount point, `EACCES` when one may not be removed.
fn removable_directories(root: &OwnedFd) -> Result<Vec<PathBuf>, Errno> {
    let mut directories = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(directory) = directories.get(next).cloned() {
        next += 1;
        let opened = open_beneath(root, &directory, DIRECTORY, Links::Refused)?;
        let mut is_checked = false;
        for entry in entries(&opened)? {
            let (name, kind) = entry?;
            // An empty one goes with a right to the directory that it is in.
            if !is_checked {
                require_removable(&opened)?;
                is_checked = true;
            }
            match is_mount_point(&opened, &name) {
                Ok(false) if kind == FileType::Directory => directories.push(directory.join(name)),
                Ok(false) | Err(Errno::NOENT) => {}
                Ok(true) => return Err(Errno::BUSY),
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(directories)
}

/// Whether something is mounted on a name. A kernel before 5.8, or a filter without `statx`, does
/// not say; there a directory on another device than the one it is in counts as a mount point.
pub(crate) fn is_mount_point(directory: impl AsFd, name: &OsStr) -> Result<bool, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(&directory, name, flags, StatxFlags::TYPE) {
        Ok(found)
            if found
                .stx_attributes_mask
                .contains(StatxAttributes::MOUNT_ROOT) =>
        {
            Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        }
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => {
            let (above, found) = (fstat(&directory)?, statat(&directory, name, flags)?);
            let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            Ok(is_directory && above.st_dev != found.st_dev)
        }
        Err(errno) => Err(errno),
    }
}
