//! Writes entries beneath one directory, and nowhere else (FA-1).
//!
//! A path is walked name by name through open directories, and no link is ever followed, so
//! there is no name that leads out. Nothing is ever written into what exists: what is in the way
//! is taken away first, so a hard link cannot become a way to change another entry.
//!
//! What an overlay must hide in the layers below is written the way that works for everybody: a
//! deleted name is a character device 0/0, which needs no privilege since Linux 5.8, and a
//! directory that starts anew has `user.overlay.opaque`, which counts for overlays that are
//! mounted with `userxattr`. Attributes in archives are not kept, nor are devices, so an image
//! cannot write either by itself.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, Timespec, Timestamps, XattrFlags, fchmod,
        fsetxattr, futimens, linkat, mkdirat, mknodat, openat, statat, symlinkat, unlinkat,
        utimensat,
    },
    io::Errno,
};

use super::{
    archive::cut_short,
    entry_path::EntryPath,
    failure::{Refusal, UnpackError, shown},
};
use crate::limits::Budget;

/// Directories can always be listed, entered and emptied by their owner.
const DIRECTORY_MODE_MIN: u32 = 0o700;
/// The sticky bit stays; the bits that lend rights do not.
const DIRECTORY_MODE_MASK: u32 = 0o1777;
const FILE_MODE_MIN: u32 = 0o400;
const FILE_MODE_MASK: u32 = 0o777;
/// For directories that have no entry of their own.
const IMPLIED_MODE: u32 = 0o755;
const LINK_BYTES_MAX: usize = 4_095;
/// The end of the year 9999; no honest time is later.
const MODIFIED_MAX: i64 = 253_402_300_799;
const COPY_BYTES: usize = 128 * 1024;

const OPAQUE: &str = "user.overlay.opaque";
const OPAQUE_VALUE: &[u8] = b"y";
/// The device number of what overlayfs takes for a deletion.
const WHITEOUT: u64 = 0;

/// What a tree has come to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Entries, and the directories that were made for them without having one.
    pub(crate) entries: u64,
    /// Bytes of all files.
    pub(crate) file_bytes: u64,
    /// Devices, pipes and sockets that were left out.
    pub(crate) skipped: u64,
}

/// A directory being filled. Nobody else writes there.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    root: OwnedFd,
    /// Whoever hands over an entry has it charged; what it implies is charged here.
    budget: &'a Budget,
    /// The directories down to where the last entry went, so that the next is near.
    way: Vec<(Vec<u8>, OwnedFd)>,
    pub(super) contents: Contents,
}

/// Whether a layer hides everything below it. overlayfs does not ask the root of a layer that.
pub(crate) fn is_opaque_root(layer: &Path) -> io::Result<bool> {
    let mut value = [0; 8];
    match rustix::fs::lgetxattr(layer, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value.get(..length) == Some(OPAQUE_VALUE)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        // Longer than ours.
        Err(Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl<'a> Tree<'a> {
    /// Fills an empty directory.
    pub(super) fn open(root: &Path, budget: &'a Budget) -> Result<Self, UnpackError> {
        let root = openat(CWD, root, directory_flags(), Mode::empty());
        let root = root.map_err(|error| UnpackError::writing(b"/", error))?;
        let tree = Self {
            root,
            budget,
            way: Vec::new(),
            contents: Contents::default(),
        };
        let mode = Mode::from_raw_mode(IMPLIED_MODE);
        fchmod(&tree.root, mode).map_err(|error| UnpackError::writing(b"/", error))?;
        Ok(tree)
    }

    pub(super) fn add_directory(&mut self, path: &EntryPath, mode: u32) -> Result<(), UnpackError> {
        let failed = |error: Errno| UnpackError::writing(&path.to_bytes(), error);
        let mode = Mode::from_raw_mode(mode & DIRECTORY_MODE_MASK | DIRECTORY_MODE_MIN);
        let Some((name, above)) = path.split() else {
            return fchmod(&self.root, mode).map_err(failed);
        };
        let parent = self.enter(above, path)?;
        let directory = match open_directory(parent, name) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => make_directory(parent, name).map_err(failed)?,
            Err(Errno::NOTDIR | Errno::LOOP) if is_whiteout(parent, name) => {
                start_anew(parent, name, path)?
            }
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(parent, os(name), AtFlags::empty())
                .and_then(|()| make_directory(parent, name))
                .map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        fchmod(&directory, mode).map_err(failed)
    }

    /// Writes a file, and lets `each` see what is written.
    pub(super) fn add_file(
        &mut self,
        path: &EntryPath,
        attributes: Attributes,
        content: &mut dyn Read,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), UnpackError> {
        let failed = |error: io::Error| UnpackError::writing(&path.to_bytes(), error);
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.replace(path, |parent, name| {
            openat(parent, os(name), flags, Mode::RUSR | Mode::WUSR)
        })?;
        let mut file = File::from(file);
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cut_short(error)),
            };
            let piece = buffer.get(..read).unwrap_or_default();
            file.write_all(piece).map_err(failed)?;
            each(piece);
            let bytes = self.contents.file_bytes;
            self.contents.file_bytes = bytes.saturating_add(read as u64);
        }
        let mode = Mode::from_raw_mode(attributes.mode & FILE_MODE_MASK | FILE_MODE_MIN);
        fchmod(&file, mode)
            .and_then(|()| futimens(&file, &attributes.times()))
            .map_err(|error| failed(error.into()))
    }

    /// Makes a link with any target: it is text until somebody inside the sandbox follows it.
    pub(super) fn add_symlink(
        &mut self,
        path: &EntryPath,
        attributes: Attributes,
        target: &[u8],
    ) -> Result<(), UnpackError> {
        if target.is_empty() || target.contains(&0) || target.len() > LINK_BYTES_MAX {
            return Err(refused(path, Refusal::BadName));
        }
        let times = attributes.times();
        self.replace(path, |parent, name| {
            symlinkat(os(target), parent, os(name))?;
            utimensat(parent, os(name), &times, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Gives a file or a link a second name. A link is not followed: the name is the link's.
    pub(super) fn add_hard_link(
        &mut self,
        path: &EntryPath,
        target: &EntryPath,
    ) -> Result<(), UnpackError> {
        let failed = |error: io::Error| UnpackError::writing(&path.to_bytes(), error);
        let Some((target_name, target_above)) = target.split() else {
            return Err(refused(path, Refusal::BadTarget));
        };
        let place = self.find(target_above, path)?;
        let found = statat(place, os(target_name), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|_| refused(path, Refusal::NoTarget))?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile | FileType::Symlink => {}
            _ => return Err(refused(path, Refusal::BadTarget)),
        }
        if path == target {
            return Ok(());
        }
        let place = place.try_clone_to_owned().map_err(failed)?;
        let linked = self.replace(path, |parent, name| {
            linkat(&place, os(target_name), parent, os(name), AtFlags::empty())
        });
        match linked {
            // What was in the way held the target.
            Err(UnpackError::Write { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(refused(path, Refusal::NoTarget))
            }
            other => other,
        }
    }

    /// Hides one name of the layers below. What this layer has under that name stays.
    pub(super) fn hide(&mut self, path: &EntryPath) -> Result<(), UnpackError> {
        let Some((name, above)) = path.split() else {
            return Err(refused(path, Refusal::ReplacesRoot));
        };
        let parent = self.enter(above, path)?;
        match open_directory(parent, name) {
            Ok(directory) => make_opaque(&directory, path),
            Err(Errno::NOENT) => make_whiteout(parent, name)
                .map_err(|error| UnpackError::writing(&path.to_bytes(), error)),
            // A file or a link hides what is below it by being there.
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(UnpackError::writing(&path.to_bytes(), error)),
        }
    }

    /// Hides everything that the layers below have in a directory.
    pub(super) fn hide_all(&mut self, path: &EntryPath) -> Result<(), UnpackError> {
        let directory = self.enter(path.parts(), path)?;
        make_opaque(directory, path)
    }

    /// Makes something at a path after taking away what is there.
    fn replace<T>(
        &mut self,
        path: &EntryPath,
        mut make: impl FnMut(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, UnpackError> {
        let failed = |error: Errno| UnpackError::writing(&path.to_bytes(), error);
        let Some((name, above)) = path.split() else {
            return Err(refused(path, Refusal::ReplacesRoot));
        };
        let parent = self.enter(above, path)?;
        match make(parent, name) {
            Err(Errno::EXIST) => {}
            made => return made.map_err(failed),
        }
        remove(parent, name).map_err(failed)?;
        make(parent, name).map_err(failed)
    }

    /// Opens a directory; what is missing on the way is made, and charged like an entry, or a few
    /// long names could make very many directories (FA-9).
    fn enter(
        &mut self,
        parts: &[Vec<u8>],
        path: &EntryPath,
    ) -> Result<BorrowedFd<'_>, UnpackError> {
        let budget = self.budget;
        self.walk(parts, path, |parent, name, contents| {
            let mut charge = || {
                contents.entries = contents.entries.saturating_add(1);
                budget.charge_entries(1)
            };
            match open_directory(parent, name) {
                Ok(directory) => Ok(directory),
                Err(Errno::NOENT) => {
                    charge()?;
                    make_directory(parent, name)
                        .map_err(|error| UnpackError::writing(&path.to_bytes(), error))
                }
                Err(Errno::NOTDIR | Errno::LOOP) if is_whiteout(parent, name) => {
                    charge()?;
                    start_anew(parent, name, path)
                }
                Err(Errno::NOTDIR | Errno::LOOP) => Err(refused(path, Refusal::ThroughLink)),
                Err(error) => Err(UnpackError::writing(&path.to_bytes(), error)),
            }
        })
    }

    /// Opens a directory that must be there.
    fn find(&mut self, parts: &[Vec<u8>], path: &EntryPath) -> Result<BorrowedFd<'_>, UnpackError> {
        self.walk(parts, path, |parent, name, _| {
            open_directory(parent, name).map_err(|error| match error {
                Errno::NOENT => refused(path, Refusal::NoTarget),
                Errno::NOTDIR | Errno::LOOP => refused(path, Refusal::ThroughLink),
                error => UnpackError::writing(&path.to_bytes(), error),
            })
        })
    }

    fn walk(
        &mut self,
        parts: &[Vec<u8>],
        path: &EntryPath,
        step: impl Fn(BorrowedFd<'_>, &[u8], &mut Contents) -> Result<OwnedFd, UnpackError>,
    ) -> Result<BorrowedFd<'_>, UnpackError> {
        let known = self.way.iter().zip(parts);
        let shared = known.take_while(|((name, _), part)| name == *part).count();
        self.way.truncate(shared);
        for part in parts.iter().skip(shared) {
            let here = self.way.last().map_or(&self.root, |(_, open)| open);
            let next = step(here.as_fd(), part, &mut self.contents)?;
            self.way.push((part.clone(), next));
        }
        debug_assert_eq!(self.way.len(), parts.len(), "{path:?}");
        let here = self.way.last().map_or(&self.root, |(_, open)| open);
        Ok(here.as_fd())
    }
}

/// What is kept of an entry besides its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    /// Seconds since 1970. Kept because programs compare it, such as Python with what it compiled.
    pub(super) modified: u64,
}

impl Attributes {
    fn times(self) -> Timestamps {
        let seconds = i64::try_from(self.modified).unwrap_or(MODIFIED_MAX);
        let time = Timespec {
            tv_sec: seconds.min(MODIFIED_MAX),
            tv_nsec: 0,
        };
        Timestamps {
            last_access: time,
            last_modification: time,
        }
    }
}

fn refused(path: &EntryPath, why: Refusal) -> UnpackError {
    UnpackError::refused(&path.to_bytes(), why)
}

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// `ENOTDIR` or `ELOOP` when something else is there.
fn open_directory(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(parent, os(name), directory_flags(), Mode::empty())
}

fn make_directory(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    mkdirat(parent, os(name), Mode::from_raw_mode(DIRECTORY_MODE_MIN))?;
    let directory = open_directory(parent, name)?;
    fchmod(&directory, Mode::from_raw_mode(IMPLIED_MODE))?;
    Ok(directory)
}

fn make_whiteout(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let kind = FileType::CharacterDevice;
    mknodat(parent, os(name), kind, Mode::empty(), WHITEOUT)
}

fn is_whiteout(parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    statat(parent, os(name), AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
            && found.st_rdev == WHITEOUT
    })
}

/// Turns the deletion of a name into a directory that has nothing of the one below.
fn start_anew(
    parent: BorrowedFd<'_>,
    name: &[u8],
    path: &EntryPath,
) -> Result<OwnedFd, UnpackError> {
    let directory = unlinkat(parent, os(name), AtFlags::empty())
        .and_then(|()| make_directory(parent, name))
        .map_err(|error| UnpackError::writing(&path.to_bytes(), error))?;
    make_opaque(&directory, path)?;
    Ok(directory)
}

fn make_opaque(directory: impl std::os::fd::AsFd, path: &EntryPath) -> Result<(), UnpackError> {
    fsetxattr(directory, OPAQUE, OPAQUE_VALUE, XattrFlags::empty()).map_err(|error| {
        UnpackError::Hide {
            entry: shown(&path.to_bytes()),
            source: error.into(),
        }
    })
}

/// Removes whatever has a name, as deep as paths are allowed to be.
fn remove(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(parent, os(name), AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        other => return other,
    }
    let directory = open_directory(parent, name)?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            inner => remove(directory.as_fd(), inner)?,
        }
    }
    unlinkat(parent, os(name), AtFlags::REMOVEDIR)
}
