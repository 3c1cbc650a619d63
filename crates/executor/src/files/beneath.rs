//! Opening files beneath a directory that nothing may lead out of.
//!
//! This is the one place that turns "inside" into open files: the scope of file actions, the
//! destination of an upload, the tree of a download and of a search all stand on it.
//!
//! The kernel does the work (`openat2` with `RESOLVE_BENEATH`, Linux 5.6), so there is no moment
//! between a check and its use. It refuses every absolute link, also one that points back
//! inside, and old kernels and some filters lack the call; for those cases the path is walked
//! name by name with `O_NOFOLLOW`, under the same rules.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlinkat},
    io::Errno,
};

/// How often a lookup that raced with a rename is tried again.
const RACES_MAX: usize = 16;
/// As many links as the kernel follows.
pub(crate) const LINKS_MAX: usize = 40;
/// Every level of a walk holds a descriptor.
const DEPTH_MAX: usize = 256;

/// Whether links on the way are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Followed as long as they stay inside.
    Inside,
    /// Refused with `ELOOP`, wherever they lead.
    Refused,
}

/// Opens a relative path inside a directory; an empty one is the directory. `EXDEV` says that
/// the path leads out.
///
/// The directory has no name here, so a link with an absolute target always leads out.
pub(crate) fn open_beneath(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    Base {
        handle: directory.as_fd(),
        names: &[],
    }
    .open(path, flags, links)
}

/// An open directory together with its names, by which absolute paths are known to be inside.
#[derive(Debug)]
pub(crate) struct Beneath {
    handle: OwnedFd,
    /// As it was named, and without links, since programs print that name too.
    names: Vec<PathBuf>,
}

impl Beneath {
    /// Opens the directory itself, through whatever links there are.
    pub(crate) fn open_root(root: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self::new(handle, root))
    }

    /// A directory that is open already, with the name it was opened by.
    pub(crate) fn new(handle: OwnedFd, name: &Path) -> Self {
        let mut names = vec![name.to_owned()];
        if let Ok(real) = name.canonicalize()
            && real != name
        {
            names.push(real);
        }
        Self { handle, names }
    }

    /// The directory as it was named.
    pub(crate) fn root(&self) -> &Path {
        self.names.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Opens an absolute path; `EXDEV` says that it leads out.
    ///
    /// A name decides only where the lookup starts. Whether it stays inside is the kernel's word.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let base = self.base();
        let relative = base.relative(path).ok_or(Errno::XDEV)?;
        base.open(relative, flags, Links::Inside)
    }

    /// Opens a path relative to the directory; `EXDEV` says that it leads out.
    pub(crate) fn open_relative(
        &self,
        path: &Path,
        flags: OFlags,
        links: Links,
    ) -> Result<OwnedFd, Errno> {
        self.base().open(path, flags, links)
    }

    fn base(&self) -> Base<'_> {
        Base {
            handle: self.handle.as_fd(),
            names: &self.names,
        }
    }
}

impl AsFd for Beneath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Where a lookup starts and what it must not leave.
#[derive(Clone, Copy)]
struct Base<'a> {
    handle: BorrowedFd<'a>,
    names: &'a [PathBuf],
}

impl Base<'_> {
    fn open(self, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let resolve = match links {
            Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        };
        for _ in 0..RACES_MAX {
            match openat2(self.handle, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                // A seccomp filter that does not know the call answers EPERM.
                Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => {
                    return self.walk(path, flags, links);
                }
                answer => return answer,
            }
        }
        Err(Errno::AGAIN)
    }

    fn relative(self, path: &Path) -> Option<&Path> {
        self.names
            .iter()
            .find_map(|name| path.strip_prefix(name).ok())
    }

    fn walk(self, path: &Path, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
        if path.is_absolute() {
            return Err(Errno::XDEV);
        }
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut todo = names(path);
        let mut followed = 0;
        while let Some(name) = todo.pop_front() {
            if name == OsStr::new("..") {
                above.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            let here = above.last().map_or(self.handle, AsFd::as_fd);
            match read_link(here, &name)? {
                Some(target) => {
                    followed += 1;
                    if followed > LINKS_MAX || links == Links::Refused {
                        return Err(Errno::LOOP);
                    }
                    let target = if target.is_absolute() {
                        above.clear();
                        self.relative(&target).ok_or(Errno::XDEV)?.to_owned()
                    } else {
                        target
                    };
                    let mut ahead = names(&target);
                    ahead.append(&mut todo);
                    todo = ahead;
                }
                None if todo.is_empty() => {
                    return openat(here, &name, flags | OFlags::NOFOLLOW, Mode::empty());
                }
                None if above.len() == DEPTH_MAX => return Err(Errno::NAMETOOLONG),
                None => {
                    let step =
                        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let next = openat(here, &name, step, Mode::empty())?;
                    above.push(next);
                }
            }
        }
        let here = above.last().map_or(self.handle, AsFd::as_fd);
        openat(here, ".", flags, Mode::empty())
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Where a name points when it is a symbolic link.
pub(crate) fn read_link(directory: impl AsFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    match readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
