//! Replacing a file's content so that a reader, or a crash, finds the old or the new one.
//!
//! The new content goes to a temporary file in the same directory, gets its final mode and
//! owner, is synced, and is renamed over the target. A second name of the old file (a hard link)
//! keeps the old content. Where the directory does not let us do that (a single file mounted
//! into a container, a directory of somebody else) the file is written in place.

use std::{ffi::OsString, io::Write, ops::Deref, os::fd::OwnedFd};

use rustix::{
    fs::{
        AtFlags, FallocateFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fallocate, fchmod,
        fchown, fdatasync, fstat, ftruncate, openat, renameat, renameat_with, unlinkat,
    },
    io::Errno,
};

use super::{Failure, Slot};
use crate::owner::Owner;

/// What files get that were not there before: the group may write, everybody may read.
pub(crate) const NEW_FILE_MODE: u32 = 0o664;

/// Collisions of random names mean that something else is wrong.
const NAMES_TRIED_MAX: usize = 8;

/// What is expected in the place that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// Nothing: the file is new and belongs to the owner.
    Absent(Owner),
    /// This file, whose mode and owner stay, and which must not have changed since.
    Present(&'a Stat),
}

/// Whether a new file belongs to whom it should.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    AsWanted,
    Refused(Failure),
}

impl Slot {
    /// Puts `content` into this place, or changes nothing.
    pub(crate) fn replace(&self, content: &[u8], target: Target<'_>) -> Result<Ownership, Failure> {
        match (self.replace_by_rename(content, target), target) {
            (
                Err(Errno::ACCESS | Errno::PERM | Errno::BUSY | Errno::XDEV),
                Target::Present(old),
            ) => self.overwrite(content, old).map(|()| Ownership::AsWanted),
            (Err(Errno::EXIST | Errno::STALE), _) => Err(Failure::Changed {
                path: self.shown().to_owned(),
            }),
            (Err(errno), _) => Err(self.failure(errno)),
            (Ok(ownership), _) => Ok(ownership),
        }
    }

    fn replace_by_rename(&self, content: &[u8], target: Target<'_>) -> Result<Ownership, Errno> {
        let mode = match target {
            Target::Absent(_) => NEW_FILE_MODE,
            Target::Present(old) => old.st_mode & 0o7777,
        };
        let mut draft = Draft::create(self, mode & 0o777)?;
        let mut ownership = Ownership::AsWanted;
        match target {
            Target::Absent(owner) => {
                if let Err(errno) = owner.give(&draft.file) {
                    ownership = Ownership::Refused(self.failure(errno));
                }
            }
            Target::Present(old) => draft.belong_to(old)?,
        }
        draft
            .file
            .write_all(content)
            .map_err(|error| errno_of(&error))?;
        // Last, because a write and a change of owner each take set-id bits away.
        draft.permit(mode)?;
        fdatasync(&draft.file)?;
        match target {
            Target::Absent(_) => draft.rename_to_free_name()?,
            Target::Present(old) => {
                let now = self.stat()?;
                if !same_file(&now, old) {
                    return Err(Errno::STALE);
                }
                draft.rename_over()?;
            }
        }
        Ok(ownership)
    }

    fn overwrite(&self, content: &[u8], old: &Stat) -> Result<(), Failure> {
        let flags =
            OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file: OwnedFd = openat(self.directory(), self.name(), flags, Mode::empty())
            .map_err(|errno| self.failure(errno))?;
        let now = fstat(&file).map_err(|errno| self.failure(errno))?;
        if !same_file(&now, old) {
            return Err(Failure::Changed {
                path: self.shown().to_owned(),
            });
        }
        if self.refuse_hard_links && now.st_nlink > 1 {
            return Err(Failure::HardLinked {
                path: self.shown().to_owned(),
            });
        }
        let mut file = std::fs::File::from(file);
        let length = content.len() as u64;
        // A full disk must be found out before the first byte of the old content is gone.
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(self.failure(errno)),
        }
        file.write_all(content)
            .map_err(|error| Failure::io(&error, self.shown()))?;
        ftruncate(&file, length)
            .and_then(|()| fdatasync(&file))
            .map_err(|errno| self.failure(errno))
    }

    fn failure(&self, errno: Errno) -> Failure {
        Failure::os(errno, self.shown())
    }
}

/// The temporary file; unless it is renamed it goes away with this value.
#[derive(Debug)]
pub(crate) struct Draft<S: Deref<Target = Slot>> {
    slot: S,
    name: OsString,
    pub(crate) file: std::fs::File,
    renamed: bool,
}

impl<S: Deref<Target = Slot>> Draft<S> {
    /// Makes an empty file with at most these permissions.
    pub(crate) fn create(slot: S, mode: u32) -> Result<Self, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..NAMES_TRIED_MAX {
            let name = OsString::from(format!(".zareba-{:016x}.tmp", rand::random::<u64>()));
            match openat(slot.directory(), &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    return Ok(Self {
                        slot,
                        name,
                        file: file.into(),
                        renamed: false,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    /// Gives it to whom another file belongs. A change that changes nothing is left out: the
    /// file system would log it all the same.
    pub(crate) fn belong_to(&self, other: &Stat) -> Result<(), Errno> {
        let now = fstat(&self.file)?;
        if (now.st_uid, now.st_gid) == (other.st_uid, other.st_gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(other.st_uid), Gid::from_raw(other.st_gid));
        fchown(&self.file, Some(uid), Some(gid))
    }

    /// Gives it exactly these permissions.
    pub(crate) fn permit(&self, mode: u32) -> Result<(), Errno> {
        if fstat(&self.file)?.st_mode & 0o7777 == mode {
            return Ok(());
        }
        fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    pub(crate) fn rename_over(&mut self) -> Result<(), Errno> {
        let directory = self.slot.directory();
        renameat(directory, &self.name, directory, self.slot.name())?;
        self.renamed = true;
        Ok(())
    }

    /// Fails with `EEXIST` when somebody was faster.
    pub(crate) fn rename_to_free_name(&mut self) -> Result<(), Errno> {
        let directory = self.slot.directory();
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(directory, &self.name, directory, self.slot.name(), flags) {
            Ok(()) => {
                self.renamed = true;
                Ok(())
            }
            // Some network file systems do not know the flag.
            Err(Errno::INVAL | Errno::NOSYS) => match self.slot.stat() {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => self.rename_over(),
                Err(errno) => Err(errno),
            },
            Err(errno) => Err(errno),
        }
    }
}

impl<S: Deref<Target = Slot>> Drop for Draft<S> {
    fn drop(&mut self) {
        if !self.renamed
            && let Err(errno) = unlinkat(self.slot.directory(), &self.name, AtFlags::empty())
        {
            tracing::warn!(%errno, file = self.slot.shown(), "temporary file stays behind");
        }
    }
}

/// The same inode with the same content, as far as its times tell.
fn same_file(now: &Stat, then: &Stat) -> bool {
    let identity = |stat: &Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
        )
    };
    identity(now) == identity(then)
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::{FilePath, fixture::Fixture};

    fn slot(fixture: &Fixture, name: &str) -> Slot {
        let path = FilePath::locate(name, &fixture.root()).unwrap();
        fixture.files.workspace.slot(&path).unwrap()
    }

    #[test]
    fn a_write_in_place_leaves_nothing_of_the_old_content() {
        let fixture = Fixture::enclosed();
        fixture.put("f", "a long old content");
        let slot = slot(&fixture, "f");
        let old = slot.stat().unwrap();
        assert_eq!(slot.overwrite(b"short", &old), Ok(()));
        assert_eq!(fixture.get("f"), "short");
        let now = slot.stat().unwrap();
        assert_eq!(now.st_ino, old.st_ino);
        assert_eq!(slot.overwrite(b"", &now), Ok(()));
        assert_eq!(fixture.get("f"), "");
    }

    #[test]
    fn a_write_in_place_does_not_reach_another_name_or_another_file() {
        let fixture = Fixture::enclosed();
        let path = fixture.put("f", "old");
        let slot = slot(&fixture, "f");
        let old = slot.stat().unwrap();
        fs::hard_link(&path, fixture.outside().join("alias")).unwrap();
        let failure = Failure::HardLinked { path: path.clone() };
        assert_eq!(slot.overwrite(b"new", &old), Err(failure));
        fs::remove_file(&path).unwrap();
        fixture.put("f", "other");
        assert_eq!(slot.overwrite(b"new", &old), Err(Failure::Changed { path }));
        assert_eq!(fixture.get("f"), "other");
        assert_eq!(
            fs::read_to_string(fixture.outside().join("alias")).unwrap(),
            "old"
        );
    }
}
