//! Where an archive is unpacked before anyone sees it: a hidden directory in the destination.
//!
//! Nothing is created through a link, because links are created last; nothing replaces anything,
//! so a name that comes twice is noticed. Dropping the staging removes all of it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Uid},
    io::Errno,
};
use zareba_wire::TransferError;

use super::{
    budget::Budget,
    destination::{Destination, new_directory},
    entry_path::EntryPath,
    failure::{bad_entry, os_error},
    merge::merge,
    spool::{PERMISSION_BITS, hidden_name},
};
use crate::{
    Owner,
    files::{DirectoryMode, Links, NewDirectory, make_directory, open_beneath, remove_tree},
};

/// Bytes copied at a time.
const COPY_BYTES: usize = 64 * 1024;
/// A directory's owner can always use it, or nobody could merge or remove it.
const DIRECTORY_MODE_MIN: u32 = 0o700;

/// Why an entry was not made.
#[derive(Debug)]
enum Unmade {
    Refused(Errno),
    Spent(TransferError),
}

impl From<Errno> for Unmade {
    fn from(error: Errno) -> Self {
        Self::Refused(error)
    }
}

impl From<TransferError> for Unmade {
    fn from(error: TransferError) -> Self {
        Self::Spent(error)
    }
}

/// An archive being unpacked.
#[derive(Debug)]
pub(super) struct Staging<'a> {
    destination: &'a Destination,
    name: OsString,
    root: OwnedFd,
    links: Vec<(EntryPath, OsString)>,
    /// The directory of the entry before, which most often is the next entry's too.
    recent: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Staging<'a> {
    /// Makes an empty one.
    pub(super) fn create(destination: &'a Destination) -> Result<Self, TransferError> {
        let name = hidden_name();
        let private = NewDirectory {
            owner: Owner::Ourselves,
            mode: DirectoryMode::Exactly(0o700),
        };
        let root = make_directory(&destination.directory, &name, private)
            .map_err(|error| os_error(error, &destination.path))?;
        Ok(Self {
            destination,
            name,
            root,
            links: Vec::new(),
            recent: None,
        })
    }

    /// Makes a directory, or sets the mode of one that an earlier entry implied.
    pub(super) fn add_directory(
        &mut self,
        path: &EntryPath,
        mode: u32,
        budget: &mut Budget,
    ) -> Result<(), TransferError> {
        if path.is_root() {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(mode & PERMISSION_BITS | DIRECTORY_MODE_MIN);
        self.make_entry_directory(path, mode, budget)
            .map_err(|error| self.failure(path, error))
    }

    /// The directory itself is charged as an entry, and what is above it apart.
    fn make_entry_directory(
        &mut self,
        path: &EntryPath,
        mode: Mode,
        budget: &mut Budget,
    ) -> Result<(), Unmade> {
        let owner = self.destination.owner;
        let (parent, name) = self.parent_of(path, budget)?;
        let (directory, _) = make_or_open(parent, name, owner)?;
        rustix::fs::fchmod(&directory, mode)?;
        self.recent = Some((path.as_path().to_path_buf(), directory));
        Ok(())
    }

    /// Writes a file.
    pub(super) fn add_file(
        &mut self,
        path: &EntryPath,
        mode: u32,
        content: &mut dyn Read,
        budget: &mut Budget,
    ) -> Result<(), TransferError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::RUSR | Mode::WUSR;
        let opened = self
            .parent_of(path, budget)
            .and_then(|(parent, name)| Ok(rustix::fs::openat(parent, name, flags, private)?));
        let mut file = File::from(opened.map_err(|error| self.failure(path, error))?);
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(bad_entry(bytes_of(path), format!("is corrupt: {error}")));
                }
            };
            budget.charge_bytes(read as u64)?;
            file.write_all(&buffer[..read])
                .map_err(|error| os_error(error, &self.final_path(path)))?;
        }
        let owner = self.destination.owner;
        owner
            .give(&file)
            .and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & PERMISSION_BITS)))
            .map_err(|error| os_error(error, &self.final_path(path)))
    }

    /// Gives a second name to a file of the same archive.
    pub(super) fn add_hard_link(
        &mut self,
        path: &EntryPath,
        target: &EntryPath,
        budget: &mut Budget,
    ) -> Result<(), TransferError> {
        let missing = "is a hard link to something that is not an earlier file of the archive";
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = target.as_path().parent().unwrap_or(Path::new(""));
        let from = open_beneath(&self.root, parent, flags, Links::Refused)
            .map_err(|_| bad_entry(bytes_of(path), missing))?;
        let Some(from_name) = target.as_path().file_name() else {
            return Err(bad_entry(bytes_of(path), missing));
        };
        let linked = self.parent_of(path, budget).and_then(|(parent, name)| {
            let linked = rustix::fs::linkat(&from, from_name, parent, name, AtFlags::empty());
            Ok(linked?)
        });
        linked.map_err(|error| match error {
            Unmade::Refused(Errno::NOENT | Errno::PERM) => bad_entry(bytes_of(path), missing),
            error => self.failure(path, error),
        })
    }

    /// Notes a link, which is made when everything else is in place, and makes the directory for it.
    pub(super) fn add_link(
        &mut self,
        path: EntryPath,
        target: &[u8],
        budget: &mut Budget,
    ) -> Result<(), TransferError> {
        path.check_link(target)?;
        let entered = self.parent_of(&path, budget).map(drop);
        entered.map_err(|error| self.failure(&path, error))?;
        self.links
            .push((path, OsStr::from_bytes(target).to_owned()));
        Ok(())
    }

    /// Makes the links and moves everything to where it belongs, over what was there before.
    pub(super) fn publish(mut self) -> Result<(), TransferError> {
        // A link that is moved through another link would start somewhere else than it was
        // checked for, so an archive with links is merged into real directories only.
        let links = if self.links.is_empty() {
            Links::Inside
        } else {
            Links::Refused
        };
        for (path, target) in std::mem::take(&mut self.links) {
            self.make_link(&path, &target)
                .map_err(|error| self.failure(&path, error.into()))?;
        }
        merge(&self.root, self.destination, links)
    }

    fn make_link(&self, path: &EntryPath, target: &OsStr) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let name = path.as_path().file_name().ok_or(Errno::EXIST)?;
        let parent = path.as_path().parent().unwrap_or(Path::new(""));
        let parent = open_beneath(&self.root, parent, flags, Links::Refused)?;
        rustix::fs::symlinkat(target, &parent, name)?;
        if let Owner::User { uid, gid } = self.destination.owner {
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            rustix::fs::chownat(&parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// The open directory that an entry is in, and the entry's own name.
    fn parent_of<'p>(
        &mut self,
        path: &'p EntryPath,
        budget: &mut Budget,
    ) -> Result<(&OwnedFd, &'p OsStr), Unmade> {
        // Only the archive's root has no name, and it is there already.
        let name = path.as_path().file_name().ok_or(Errno::EXIST)?;
        let parent = path.as_path().parent().unwrap_or(Path::new(""));
        Ok((self.enter(parent, budget)?, name))
    }

    /// Opens a directory, making what is missing, one name at a time and through no link.
    fn enter(&mut self, path: &Path, budget: &mut Budget) -> Result<&OwnedFd, Unmade> {
        if path.as_os_str().is_empty() {
            return Ok(&self.root);
        }
        if self
            .recent
            .as_ref()
            .is_none_or(|(recent, _)| recent != path)
        {
            let directory = self.walk_to(path, budget)?;
            self.recent = Some((path.to_path_buf(), directory));
        }
        let recent = self.recent.as_ref();
        Ok(recent.map(|(_, directory)| directory).ok_or(Errno::NOENT)?)
    }

    fn walk_to(&self, path: &Path, budget: &mut Budget) -> Result<OwnedFd, Unmade> {
        let mut reached: Option<OwnedFd> = None;
        for name in path.components() {
            let parent = reached.as_ref().unwrap_or(&self.root);
            let owner = self.destination.owner;
            let (directory, is_new) = make_or_open(parent, name.as_os_str(), owner)?;
            if is_new {
                budget.charge_directory()?;
            }
            reached = Some(directory);
        }
        Ok(reached.ok_or(Errno::NOENT)?)
    }

    fn failure(&self, path: &EntryPath, error: Unmade) -> TransferError {
        match error {
            Unmade::Spent(error) => error,
            Unmade::Refused(Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP) => {
                bad_entry(bytes_of(path), "has a name that another entry has taken")
            }
            Unmade::Refused(error) => os_error(error, &self.final_path(path)),
        }
    }

    fn final_path(&self, path: &EntryPath) -> PathBuf {
        self.destination.path.join(path.as_path())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.destination.directory, &self.name) {
            let directory = self.destination.path.join(&self.name);
            tracing::warn!(%error, directory = %directory.display(), "cannot remove staging");
        }
    }
}

/// A directory of this name, through no link, and whether it was made.
fn make_or_open(parent: &OwnedFd, name: &OsStr, owner: Owner) -> Result<(OwnedFd, bool), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match make_directory(parent, name, new_directory(owner)) {
        Err(Errno::EXIST) => {
            let opened = rustix::fs::openat(parent, name, flags, Mode::empty())?;
            Ok((opened, false))
        }
        made => Ok((made?, true)),
    }
}

fn bytes_of(path: &EntryPath) -> &[u8] {
    path.as_path().as_os_str().as_bytes()
}
