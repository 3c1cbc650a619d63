//! Copies a directory as a layer, by the same rules as an archive.
//!
//! Links are not followed, other file systems that are mounted in it are left out, and files with
//! several names keep them.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::Read,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat},
    io::Errno,
};

use super::{
    entry_path::EntryPath,
    failure::{Refusal, UnpackError, shown},
    tree::{Attributes, Contents, Tree},
};
use crate::{
    digest::{Digest, Hasher},
    limits::Budget,
};

/// Keeps the digest of a tree apart from those of archives.
const DIGEST_OF: &[u8] = b"zareba directory 1\0";

/// What a file is, whatever its names.
type Identity = (u64, u64);

/// Copies `source` into an empty directory, without `store`, in case it is in there. The digest
/// is that of names, modes and contents.
pub(crate) fn copy_directory(
    source: &Path,
    into: &Path,
    store: &Path,
    budget: &Budget,
    tell: &mut dyn FnMut(u64),
) -> Result<(Contents, Digest), UnpackError> {
    let failed = |path: &Path, error: Errno| copying(path.as_os_str().as_bytes(), error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, source, flags, Mode::empty()).map_err(|error| failed(source, error))?;
    let root_stat = fstat(&root).map_err(|error| failed(source, error))?;
    let store_stat = rustix::fs::stat(store).map_err(|error| failed(store, error))?;
    let mut hasher = Hasher::default();
    hasher.update(DIGEST_OF);
    let mut copy = Copying {
        tree: Tree::open(into, budget)?,
        budget,
        tell,
        hasher,
        device: root_stat.st_dev,
        store: identity(&store_stat),
        linked: HashMap::new(),
    };
    copy.tree
        .add_directory(&EntryPath::of(&[]), mode(&root_stat))?;
    copy.directory(&root, &mut Vec::new())?;
    Ok((copy.tree.contents, copy.hasher.finish()))
}

struct Copying<'a> {
    tree: Tree<'a>,
    budget: &'a Budget,
    tell: &'a mut dyn FnMut(u64),
    hasher: Hasher,
    device: u64,
    store: Identity,
    /// Where a file with several names was copied first.
    linked: HashMap<Identity, EntryPath>,
}

impl Copying<'_> {
    fn directory(
        &mut self,
        directory: &OwnedFd,
        above: &mut Vec<Vec<u8>>,
    ) -> Result<(), UnpackError> {
        for name in self.names(directory, above)? {
            above.push(name);
            self.tree.contents.entries = self.tree.contents.entries.saturating_add(1);
            let path = EntryPath::parse(&above.join(&b'/'))?;
            self.entry(directory.as_fd(), &path, above)?;
            above.pop();
        }
        Ok(())
    }

    /// The names in a directory in a fixed order, each charged as an entry.
    fn names(&self, directory: &OwnedFd, above: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, UnpackError> {
        let failed = |error: Errno| copying(&above.join(&b'/'), error);
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => {
                    self.budget.charge_entries(1)?;
                    names.push(name.to_vec());
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn entry(
        &mut self,
        parent: BorrowedFd<'_>,
        path: &EntryPath,
        above: &mut Vec<Vec<u8>>,
    ) -> Result<(), UnpackError> {
        let Some((name, _)) = path.split() else {
            return Ok(());
        };
        let name = OsStr::from_bytes(name);
        let failed = |error: Errno| copying(&path.to_bytes(), error);
        let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                self.note(b'd', path, mode(&found), b"");
                self.tree.add_directory(path, mode(&found))?;
                if found.st_dev != self.device || identity(&found) == self.store {
                    return Ok(());
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let inner = openat(parent, name, flags, Mode::empty()).map_err(failed)?;
                self.directory(&inner, above)
            }
            FileType::RegularFile => self.file(parent, path, name),
            FileType::Symlink => {
                let target = readlinkat(parent, name, Vec::new()).map_err(failed)?;
                self.note(b'l', path, 0, target.to_bytes());
                let attributes = attributes(&found);
                self.tree.add_symlink(path, attributes, target.to_bytes())
            }
            _ => {
                self.tree.contents.skipped = self.tree.contents.skipped.saturating_add(1);
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        parent: BorrowedFd<'_>,
        path: &EntryPath,
        name: &OsStr,
    ) -> Result<(), UnpackError> {
        let failed = |error: Errno| copying(&path.to_bytes(), error);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(parent, name, flags, Mode::empty()).map_err(failed)?;
        let found = fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(UnpackError::refused(&path.to_bytes(), Refusal::UnknownKind));
        }
        if let Some(first) = self.linked.get(&identity(&found)).cloned() {
            self.note(b'h', path, 0, &first.to_bytes());
            return self.tree.add_hard_link(path, &first);
        }
        self.note(b'f', path, mode(&found), b"");
        let mut content = Charged {
            file: File::from(file),
            budget: self.budget,
        };
        let before = self.tree.contents.file_bytes;
        let hasher = &mut self.hasher;
        let mut each = |piece: &[u8]| hasher.update(piece);
        let added = self
            .tree
            .add_file(path, attributes(&found), &mut content, &mut each);
        added.map_err(|error| named(error, path))?;
        let bytes = self.tree.contents.file_bytes;
        self.hasher
            .update(&bytes.wrapping_sub(before).to_le_bytes());
        (self.tell)(bytes);
        if found.st_nlink > 1 {
            self.linked.insert(identity(&found), path.clone());
        }
        Ok(())
    }

    /// Puts an entry into the digest so that no two trees look alike: lengths come first.
    fn note(&mut self, kind: u8, path: &EntryPath, mode: u32, rest: &[u8]) {
        self.hasher.update(&[kind]);
        self.hasher.update(&mode.to_le_bytes());
        for part in [&path.to_bytes()[..], rest] {
            self.hasher.update(&(part.len() as u64).to_le_bytes());
            self.hasher.update(part);
        }
    }
}

/// A file whose bytes are charged as they are read.
struct Charged<'a> {
    file: File,
    budget: &'a Budget,
}

impl Read for Charged<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.budget.charge_unpacked(read as u64)?;
        Ok(read)
    }
}

fn identity(found: &Stat) -> Identity {
    (found.st_dev, found.st_ino)
}

fn mode(found: &Stat) -> u32 {
    Mode::from_raw_mode(found.st_mode).bits()
}

fn attributes(found: &Stat) -> Attributes {
    Attributes {
        mode: mode(found),
        modified: u64::try_from(found.st_mtime).unwrap_or(0),
    }
}

fn copying(path: &[u8], error: Errno) -> UnpackError {
    UnpackError::Copy {
        entry: shown(path),
        source: error.into(),
    }
}

/// Says which file it was that could not be read.
fn named(error: UnpackError, path: &EntryPath) -> UnpackError {
    match error {
        UnpackError::Read { source } => UnpackError::Copy {
            entry: shown(&path.to_bytes()),
            source,
        },
        other => other,
    }
}
