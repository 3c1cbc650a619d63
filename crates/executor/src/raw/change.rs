//! Removing, renaming and making directories.

use rustix::{
    fs::{
        AtFlags, FileType, RenameFlags, Stat, fstat, renameat, renameat_with, stat, statat,
        unlinkat,
    },
    io::Errno,
};
use zareba_protocol::python_repr::of_str as quoted;
use zareba_wire::files::{
    Depth, DirectoryRequest, Existing, FileError, FileFailure, FileStatus, Parents, RemoveRequest,
    RenameRequest,
};

use super::{
    Place, Shared,
    failure::{os, refused},
    status::status_of,
    write::check_mode,
};
use crate::files::{DirectoryMode, NewDirectory, is_mount_point, make_directory, remove_tree};

impl Shared {
    pub(super) fn remove(&self, request: &RemoveRequest) -> Result<(), FileError> {
        let path = self.locate(&request.path)?;
        let place = self.place(&path)?;
        let refuse = |errno| match errno {
            Errno::BUSY => mounted(&place.shown),
            errno => os(errno, &place.shown),
        };
        let found = place.stat().map_err(refuse)?;
        if self.holds_workspace(&found) {
            return Err(holds_workspace(&place.shown));
        }
        if is_mount_point(&place.directory, &place.name).map_err(refuse)? {
            return Err(mounted(&place.shown));
        }
        let kind = FileType::from_raw_mode(found.st_mode);
        let removed = match (kind, request.depth) {
            (FileType::Directory, Depth::Tree) => remove_tree(&place.directory, &place.name),
            (FileType::Directory, Depth::One) => {
                unlinkat(&place.directory, &place.name, AtFlags::REMOVEDIR)
            }
            _ => unlinkat(&place.directory, &place.name, AtFlags::empty()),
        };
        removed.map_err(refuse)
    }

    pub(super) fn rename(&self, request: &RenameRequest) -> Result<(), FileError> {
        let (from, to) = (self.locate(&request.from)?, self.locate(&request.to)?);
        let (from, to) = (self.place(&from)?, self.place(&to)?);
        let renamed = match request.existing {
            Existing::Replace => renameat(&from.directory, &from.name, &to.directory, &to.name),
            Existing::Keep => rename_to_free_name(&from, &to),
        };
        renamed.map_err(|errno| match errno {
            Errno::NOENT => os(errno, &from.shown),
            errno => os(errno, &to.shown),
        })
    }

    pub(super) fn make_directory(
        &self,
        request: &DirectoryRequest,
    ) -> Result<FileStatus, FileError> {
        check_mode(request.mode)?;
        let path = self.locate(&request.path)?;
        let new = NewDirectory {
            owner: self.workspace.owner(),
            mode: match request.mode {
                Some(mode) => DirectoryMode::Exactly(mode),
                None => DirectoryMode::ByUmask,
            },
        };
        let made = match request.parents {
            Parents::Require => {
                let place = self.place(&path)?;
                make_directory(&place.directory, &place.name, new)
                    .map_err(|errno| os(errno, &place.shown))?
            }
            Parents::Make => match self.reach.open_or_make(path.as_path(), new) {
                Ok((directory, mut made)) => {
                    made.keep();
                    directory
                }
                Err(unmade) => {
                    return Err(refused(self.reach.failure(unmade.errno, path.shown())));
                }
            },
        };
        let stat = fstat(&made).map_err(|errno| os(errno, path.shown()))?;
        Ok(status_of(&stat))
    }
}

impl Shared {
    /// Whether this is the workspace's directory or one above it, whatever path led there.
    fn holds_workspace(&self, found: &Stat) -> bool {
        let is_found = |stat: &Stat| (stat.st_dev, stat.st_ino) == (found.st_dev, found.st_ino);
        let workspace = self.workspace.working_dir();
        let real = workspace.canonicalize().ok();
        let paths = real.iter().flat_map(|real| real.ancestors());
        let mut paths = workspace.ancestors().chain(paths);
        paths.any(|path| stat(path).is_ok_and(|stat| is_found(&stat)))
    }
}

impl Place {
    fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn holds_workspace(shown: &str) -> FileError {
    let message = format!(
        "{} is the workspace or contains it and is not removed; remove its entries one by one",
        quoted(shown)
    );
    FileError::new(FileFailure::Denied, message)
}

fn mounted(shown: &str) -> FileError {
    let message = format!(
        "{} is a mount point or contains one, so nothing of it was removed",
        quoted(shown)
    );
    FileError::new(FileFailure::Denied, message)
}

fn rename_to_free_name(from: &Place, to: &Place) -> Result<(), Errno> {
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags) {
        // Some network file systems do not know the flag; a directory that would go into itself
        // is refused with the same number, and again below.
        Err(Errno::INVAL | Errno::NOSYS) => match to.stat() {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(&from.directory, &from.name, &to.directory, &to.name),
            Err(errno) => Err(errno),
        },
        answer => answer,
    }
}
