//! A directory whose entries are reached without leaving it (FA-1).
//!
//! A tree is either what a sandbox wrote or a directory that others may write to while it is read.
//! Each path is resolved by the kernel below the root's descriptor and without links, so no name
//! leads out, and only regular files are opened for their content.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fgetxattr, openat,
        openat2, readlinkat, statx,
    },
    io::Errno,
};
use sha2::{Digest as _, Sha256};

/// Names that are read of one directory, so that a directory of millions is not held in memory.
const NAMES_MAX: usize = 100_000;

/// The attribute of a directory that hides the one below. The overlays of sandboxes are mounted
/// with `userxattr`, and through such an overlay no program can set it.
const OPAQUE: &str = "user.overlay.opaque";

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File {
        bytes: u64,
        is_executable: bool,
    },
    Link {
        target: OsString,
    },
    /// A pipe, a socket or a device.
    Special,
    /// The mark of an overlay that the name of the lower layer is deleted.
    Whiteout,
}

/// A directory, held open.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

impl Tree {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// The same where a link on the way is an error: another sandbox may have put it there, and it could
    /// lead anywhere.
    pub(super) fn open_direct(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS;
        Ok(Self(openat2(CWD, path, flags, Mode::empty(), resolve)?))
    }

    fn below(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat2(&self.0, path, flags, Mode::empty(), resolve)
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<Directory> {
        let opened = self.below(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Directory(opened))
    }

    /// Opens a regular file. A pipe in its place neither blocks nor is read.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        // A device could act on being opened, so its kind is looked at first.
        if !matches!(self.node(path)?, Some(Node::File { .. })) {
            return Err(io::Error::other("it is no longer a regular file"));
        }
        let file = File::from(self.below(path, flags)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is no longer a regular file"))
        }
    }

    /// What a file holds; `None` if that is more than `most`.
    pub(super) fn read(&self, path: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        self.file(path)?.take(limit).read_to_end(&mut bytes)?;
        Ok((bytes.len() <= most).then_some(bytes))
    }

    pub(super) fn hash(&self, path: &Path) -> io::Result<[u8; 32]> {
        let mut reader = BufReader::new(self.file(path)?);
        let mut digest = Sha256::new();
        loop {
            let piece = reader.fill_buf()?;
            let length = piece.len();
            if length == 0 {
                return Ok(digest.finalize().into());
            }
            digest.update(piece);
            reader.consume(length);
        }
    }

    /// What a path stands for, or `None` if nothing has it.
    pub(super) fn node(&self, path: &Path) -> io::Result<Option<Node>> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Some(Node::Directory));
        };
        match self.below(above, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            opened => Directory(opened?).node(name),
        }
    }
}

/// A directory of a tree.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

impl Directory {
    pub(super) fn node(&self, name: &OsStr) -> io::Result<Option<Node>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = match statx(&self.0, name, flags, StatxFlags::BASIC_STATS) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        Ok(Some(match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::Directory => Node::Directory,
            FileType::RegularFile => Node::File {
                bytes: found.stx_size,
                is_executable: found.stx_mode & 0o100 != 0,
            },
            FileType::Symlink => {
                let target = readlinkat(&self.0, name, Vec::new())?;
                let target = OsStr::from_bytes(target.as_bytes()).to_owned();
                Node::Link { target }
            }
            FileType::CharacterDevice if (found.stx_rdev_major, found.stx_rdev_minor) == (0, 0) => {
                Node::Whiteout
            }
            _ => Node::Special,
        }))
    }

    /// Whether it hides the directory of the lower layer.
    pub(super) fn is_opaque(&self) -> bool {
        let mut value = [0; 1];
        fgetxattr(&self.0, OPAQUE, &mut value[..]).is_ok_and(|length| length == 1) && value == *b"y"
    }

    /// Its names, sorted.
    pub(super) fn names(&self) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if names.len() >= NAMES_MAX {
                let problem = format!("it holds more than {NAMES_MAX} names");
                return Err(io::Error::other(problem));
            }
            names.insert(name.to_owned());
        }
        Ok(names)
    }
}

/// Whether two files hold the same bytes.
pub(super) fn are_equal(one: File, other: File) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if length == 0 {
            return Ok(left.len() == right.len());
        }
        if left.get(..length) != right.get(..length) {
            return Ok(false);
        }
        one.consume(length);
        other.consume(length);
    }
}
