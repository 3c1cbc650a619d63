//! What is downloaded: one file, or a directory's tree walked in order through open directories.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    io::Errno,
};
use zareba_wire::TransferError;

use super::{
    beneath::{self, Links, list},
    failure::{invalid, os_error},
};

/// Entries of one download at the most; an archive's directory is kept in memory until its end.
const ENTRIES_MAX: u64 = 500_000;
/// Opening like this waits for no pipe and takes no terminal.
const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What to do with links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    /// A link to a file inside the tree is that file; every other link is left out.
    FollowInside,
    /// A link is a link.
    Keep,
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
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        let opened = match rustix::fs::openat(CWD, path, READING, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Err(TransferError::NotFound),
            // What a socket answers to being opened.
            Err(Errno::NXIO) => return Err(special(path)),
            Err(error) => return Err(os_error(error, path)),
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

    /// Hands every item to `pack`, sorted by name within each directory. Special files, and
    /// what vanishes on the way, are left out.
    pub(super) fn for_each(
        self,
        links: LinkPolicy,
        pack: &mut dyn FnMut(Item) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.metadata.is_file() {
            let path = PathBuf::from(self.path.file_name().unwrap_or(OsStr::new("file")));
            return pack(Item::File {
                path,
                file: self.opened,
                metadata: self.metadata,
            });
        }
        let tree = Tree {
            root: self.opened.into(),
            path: self.path,
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
                    let text = os_error(error, &tree.path.join(&next.path)).to_string();
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
    root: OwnedFd,
    path: PathBuf,
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
        let listed =
            list(directory).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let mut children: Vec<Pending> = listed
            .into_iter()
            .map(|(name, kind)| Pending {
                path: path.join(name),
                kind,
            })
            .filter(|child| match child.kind {
                FileType::Directory | FileType::RegularFile => true,
                FileType::Symlink => {
                    self.links == LinkPolicy::Keep || self.follow(&child.path).is_some()
                }
                _ => false,
            })
            .collect();
        children.sort_by(|a, b| b.path.cmp(&a.path));
        Ok(children)
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<File, Errno> {
        beneath::open(&self.root, path, READING | flags, Links::Refused).map(File::from)
    }

    /// The regular file inside the tree that a link leads to.
    fn follow(&self, path: &Path) -> Option<(File, Metadata)> {
        let opened = match beneath::open(&self.root, path, READING, Links::Inside) {
            // An absolute target: it may still be inside, by the name the tree was asked for.
            Err(Errno::XDEV) => {
                let target = PathBuf::from(self.read_link(path).ok()?);
                let inside = target.strip_prefix(&self.path).ok()?;
                beneath::open(&self.root, inside, READING, Links::Inside)
            }
            other => other,
        };
        let file = File::from(opened.ok()?);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some((file, metadata))
    }

    fn read_link(&self, path: &Path) -> Result<OsString, Errno> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = beneath::open(&self.root, parent, flags, Links::Refused)?;
        let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
        Ok(std::os::unix::ffi::OsStringExt::from_vec(
            target.into_bytes(),
        ))
    }
}

fn metadata(file: &File) -> Result<Metadata, Errno> {
    file.metadata()
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
