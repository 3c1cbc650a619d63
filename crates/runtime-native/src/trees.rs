//! Removing a tree that an agent made (NS-20, NS-22).
//!
//! Such a tree may be deeper than a stack, wider than memory, full of links to elsewhere and of
//! directories that nobody may enter. So nothing here recurses, holds a list or follows a link,
//! and names are only ever looked up in a directory that is open: a directory is emptied of
//! files, its subdirectories are moved up into the root of the tree under numbers, then it goes
//! itself. The numbers are a stack that lies on the disk, so a removal that is interrupted can
//! simply be begun again. Five descriptors are open at most.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, chmod, fchmod, openat, renameat,
        unlinkat,
    },
    io::Errno,
};

/// How often a directory that did not become empty is looked through again. More than once only
/// where a file system leaves names out while others are taken away.
const PASSES_MAX: u32 = 16;

/// Where subdirectories are moved to, with a number behind it.
const MOVED: &str = ".removed-";

/// Removes a directory with all that is in it, also where directories forbid that to their
/// owner. One that is not there is no error.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The parent of a bare name is empty.
    let above = Path::new(".").join(above);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, &above, flags, Mode::empty())
        .and_then(|above| Ok((open_own(above.as_fd(), name)?, above)));
    let (root, above) = match opened {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    Removal { root, moved: 0 }.empty_root()?;
    Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
}

/// A tree on its way out.
#[derive(Debug)]
struct Removal {
    root: OwnedFd,
    /// The numbers below this one may be taken by directories that were moved to the root.
    moved: u64,
}

/// What has become of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Gone,
    /// Some of its subdirectories were moved, and for the others there was no room.
    Smaller,
}

/// What one pass through a directory did.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    did_something: bool,
    /// Why a subdirectory could not be moved for now.
    no_room: Option<Errno>,
}

impl Removal {
    fn empty_root(&mut self) -> Result<(), Errno> {
        for entry in Dir::read_from(&self.root)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_dots(name) || unlink_file(self.root.as_fd(), &entry)? {
                continue;
            }
            while self.remove_directory(name)? == Outcome::Smaller {
                self.remove_moved()?;
            }
            self.remove_moved()?;
        }
        Ok(())
    }

    /// Removes what was moved to the root, the newest first, so that there is never much of it.
    fn remove_moved(&mut self) -> Result<(), Errno> {
        while let Some(newest) = self.moved.checked_sub(1) {
            let removed = self.remove_directory(OsStr::new(&moved_name(newest)))?;
            // What came on top of it goes first; then it is this one's turn again.
            if removed == Outcome::Gone && self.moved == newest + 1 {
                self.moved = newest;
            }
        }
        Ok(())
    }

    /// Empties a directory of the root and removes it.
    fn remove_directory(&mut self, name: &OsStr) -> Result<Outcome, Errno> {
        let directory = match open_own(self.root.as_fd(), name) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(Outcome::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return unlinkat(&self.root, name, AtFlags::empty()).map(|()| Outcome::Gone);
            }
            Err(error) => return Err(error),
        };
        for _ in 0..PASSES_MAX {
            let pass = self.pass_through(&directory)?;
            match (unlinkat(&self.root, name, AtFlags::REMOVEDIR), pass.no_room) {
                (Ok(()), _) => return Ok(Outcome::Gone),
                (Err(Errno::NOTEMPTY | Errno::EXIST), Some(_)) if pass.did_something => {
                    return Ok(Outcome::Smaller);
                }
                (Err(Errno::NOTEMPTY | Errno::EXIST), Some(error)) => return Err(error),
                (Err(Errno::NOTEMPTY | Errno::EXIST), None) if pass.did_something => {}
                (Err(error), _) => return Err(error),
            }
        }
        Err(Errno::NOTEMPTY)
    }

    /// Unlinks the files of a directory and moves its subdirectories to the root.
    fn pass_through(&mut self, directory: &OwnedFd) -> Result<Pass, Errno> {
        let mut pass = Pass::default();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_dots(name) {
                continue;
            }
            if !unlink_file(directory.as_fd(), &entry)? {
                match self.move_up(directory.as_fd(), name) {
                    // Room comes with what is removed meanwhile.
                    Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::MLINK)) => {
                        pass.no_room = Some(error);
                        continue;
                    }
                    moved => moved?,
                }
            }
            pass.did_something = true;
        }
        Ok(pass)
    }

    /// Moves a directory to the root under a number that is free there. An empty directory of
    /// that name is replaced, which is as good as removing it.
    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
        let mut was_let_in = false;
        loop {
            let number = self.moved;
            match renameat(parent, name, &self.root, moved_name(number)) {
                // Its entry for the directory above changes, which needs the right to write.
                Err(Errno::ACCESS | Errno::PERM) if !was_let_in => {
                    let_in(parent, name)?;
                    was_let_in = true;
                }
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => self.moved = number + 1,
                Ok(()) => {
                    self.moved = number + 1;
                    return Ok(());
                }
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

fn moved_name(number: u64) -> String {
    format!("{MOVED}{number}")
}

fn is_dots(name: &OsStr) -> bool {
    matches!(name.as_bytes(), b"." | b"..")
}

/// Unlinks what is not a directory; says whether it was none.
fn unlink_file(parent: BorrowedFd<'_>, entry: &DirEntry) -> Result<bool, Errno> {
    if entry.file_type() == FileType::Directory {
        return Ok(false);
    }
    match unlinkat(parent, entry.file_name(), AtFlags::empty()) {
        // Not every file system tells the type with the name.
        Err(Errno::ISDIR) => Ok(false),
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Opens a directory, and sees to it that we may list, enter and empty it.
fn open_own(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let_in(parent, name)?;
            openat(parent, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    // Where it is another's it may be empty all the same; if not, that is told later.
    let _ = fchmod(&directory, Mode::RWXU);
    Ok(directory)
}

/// Gives us all rights to a directory that even its owner may not open. A handle without rights
/// says which one it is, so that no link can come in between; `fchmod` does not take those, but
/// their names in `/proc` work.
fn let_in(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)
}

#[cfg(test)]
#[path = "trees_tests.rs"]
mod tests;
