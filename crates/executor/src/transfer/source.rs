//! What is downloaded: one file, or a directory's tree walked in order through open directories.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, OFlags},
    io::Errno,
};
use zareba_wire::{ArchiveFormat, TransferError};

use super::failure::{invalid, os_error, refused};
use crate::files::{Beneath, Links, READING, Reach, entries, read_link};

/// Entries of one download at the most; an archive's directory is kept in memory until its end.
const ENTRIES_MAX: usize = 500_000;

/// What to do with links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    /// A link to a file inside the tree is that file; every other link is left out.
    FollowInside,
    /// A link is a link.
    Keep,
}

impl LinkPolicy {
    /// What archives of a format can hold.
    pub(super) const fn of(format: ArchiveFormat) -> Self {
        match format {
            ArchiveFormat::Zip => Self::FollowInside,
            ArchiveFormat::Tar => Self::Keep,
        }
    }
}

/// One thing to pack. Paths are relative to what was asked for.
#[derive(Debug)]
pub(super) enum Item {
    File {
        path: PathBuf,
        file: File,
        metadata: Metadata,
    },
    Directory {
        path: PathBuf,
        metadata: Metadata,
        is_empty: bool,
    },
    Link {
        path: PathBuf,
        target: OsString,
    },
}

/// An opened file or directory.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    opened: File,
    metadata: Metadata,
}

/// An entry that waits to be packed.
#[derive(Debug)]
struct Pending {
    path: PathBuf,
    kind: FileType,
}

impl Source {
    /// Opens an absolute path. A link that the client names itself is followed.
    pub(super) fn open(path: &Path, reach: &Reach) -> Result<Self, TransferError> {
        let opened = match reach.open(path, READING) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Err(TransferError::NotFound),
            // What a socket answers to being opened.
            Err(Errno::NXIO) => return Err(special(path)),
            Err(error) => return Err(refused(reach, error, path)),
        };
        let metadata = opened.metadata().map_err(|error| os_error(error, path))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(special(path));
        }
        Ok(Self {
            path: path.to_path_buf(),
            opened,
            metadata,
        })
    }

    /// Opens everything once without packing it. An archive that is on its way cannot say any
    /// more that something in it may not be read, so that is found out before.
    pub(super) fn check(&self, links: LinkPolicy) -> Result<(), TransferError> {
        let checked = self.for_each(links, &mut |_| Ok(()));
        checked.map_err(|source| TransferError::Io {
            message: source.to_string(),
            source,
        })
    }

    /// Hands every item to `pack`, sorted by name within each directory. Special files, and
    /// what vanishes on the way, are left out.
    pub(super) fn for_each(
        &self,
        links: LinkPolicy,
        pack: &mut dyn FnMut(Item) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.metadata.is_file() {
            let path = PathBuf::from(self.path.file_name().unwrap_or(OsStr::new("file")));
            return pack(Item::File {
                path,
                file: self.opened.try_clone()?,
                metadata: self.metadata.clone(),
            });
        }
        let tree = Tree {
            root: Beneath::new(self.opened.try_clone()?.into(), &self.path),
            links,
        };
        let mut pending = vec![Pending {
            path: PathBuf::new(),
            kind: FileType::Directory,
        }];
        let mut count = 0;
        while let Some(next) = pending.pop() {
            count += 1;
            if count > ENTRIES_MAX {
                return Err(io::Error::other(format!("more than {ENTRIES_MAX} entries")));
            }
            match tree.visit(&next, &mut pending) {
                Ok(Some(item)) => pack(item)?,
                Ok(None) => {}
                // Gone or replaced since it was listed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {}
                Err(error) => {
                    let text = os_error(error, &tree.root.root().join(&next.path)).to_string();
                    return Err(io::Error::new(io::Error::from(error).kind(), text));
                }
            }
        }
        Ok(())
    }
}

fn special(path: &Path) -> TransferError {
    invalid(format!(
        "Path is neither a regular file nor a directory: '{}'",
        path.display()
    ))
}

struct Tree {
    root: Beneath,
    links: LinkPolicy,
}

impl Tree {
    /// Opens one entry. A directory puts what is in it on the list, last name first, because
    /// the list is taken from its end.
    fn visit(&self, entry: &Pending, pending: &mut Vec<Pending>) -> Result<Option<Item>, Errno> {
        let path = entry.path.clone();
        match entry.kind {
            FileType::Directory => {
                let directory = self.open(&path, OFlags::DIRECTORY)?;
                let mut children = self.children(&path, &directory)?;
                let is_empty = children.is_empty();
                pending.append(&mut children);
                if path.as_os_str().is_empty() {
                    return Ok(None);
                }
                let metadata = metadata(&directory)?;
                Ok(Some(Item::Directory {
                    path,
                    metadata,
                    is_empty,
                }))
            }
            FileType::Symlink if self.links == LinkPolicy::Keep => {
                let target = self.read_link(&path)?;
                Ok(Some(Item::Link { path, target }))
            }
            FileType::Symlink => Ok(self.follow(&path).map(|(file, metadata)| Item::File {
                path,
                file,
                metadata,
            })),
            _ => {
                let file = self.open(&path, OFlags::empty())?;
                let metadata = metadata(&file)?;
                Ok(metadata.is_file().then_some(Item::File {
                    path,
                    file,
                    metadata,
                }))
            }
        }
    }

    /// What of a directory will be packed, in reverse order.
    fn children(&self, path: &Path, directory: &File) -> Result<Vec<Pending>, Errno> {
        let mut children = Vec::new();
        for entry in entries(directory)? {
            let (name, kind) = entry?;
            let path = path.join(name);
            let is_packed = match kind {
                FileType::Directory | FileType::RegularFile => true,
                FileType::Symlink => self.links == LinkPolicy::Keep || self.follow(&path).is_some(),
                _ => false,
            };
            if is_packed {
                children.push(Pending { path, kind });
            }
            // One too many is enough to be refused, and no more are held in memory.
            if children.len() > ENTRIES_MAX {
                break;
            }
        }
        children.sort_by(|a, b| b.path.cmp(&a.path));
        Ok(children)
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<File, Errno> {
        let opened = self
            .root
            .open_relative(path, READING | flags, Links::Refused);
        opened.map(File::from)
    }

    /// The regular file inside the tree that a link leads to.
    fn follow(&self, path: &Path) -> Option<(File, Metadata)> {
        let opened = self.root.open_relative(path, READING, Links::Inside);
        let file = File::from(opened.ok()?);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some((file, metadata))
    }

    fn read_link(&self, path: &Path) -> Result<OsString, Errno> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = self.root.open_relative(parent, flags, Links::Refused)?;
        let target = read_link(directory, name)?.ok_or(Errno::NOENT)?;
        Ok(target.into_os_string())
    }
}

fn metadata(file: &File) -> Result<Metadata, Errno> {
    file.metadata()
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
