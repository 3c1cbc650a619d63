//! Opening files beneath a directory that nothing may lead out of.
//!
//! The kernel does the work (`openat2` with `RESOLVE_BENEATH`). It refuses every absolute link,
//! also one that points back into the workspace, and old kernels and some filters lack the call;
//! for those cases the path is walked name by name with `O_NOFOLLOW`, under the same rule.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat},
    io::Errno,
};

/// How often a lookup that raced with a rename is tried again.
const RACES_MAX: usize = 16;
/// As many links as the kernel follows.
pub(crate) const LINKS_MAX: usize = 40;
/// Every level of a walk holds a descriptor.
const DEPTH_MAX: usize = 256;

/// A directory that opens never leave.
#[derive(Debug)]
pub(crate) struct Beneath {
    /// The directory as it was configured.
    pub(crate) root: PathBuf,
    /// The same directory without links, since programs print this name too.
    real: PathBuf,
    handle: OwnedFd,
}

impl Beneath {
    pub(crate) fn open_root(root: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(root, flags, Mode::empty())?;
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Ok(Self { root: root.to_owned(), real, handle })
    }

    /// Opens an absolute path; `EXDEV` says that it leads out.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = self.relative(path).ok_or(Errno::XDEV)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..RACES_MAX {
            match openat2(&self.handle, relative, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                // A seccomp filter that does not know the call answers EPERM.
                Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => {
                    return self.walk(relative, flags);
                }
                answer => return answer,
            }
        }
        Err(Errno::AGAIN)
    }

    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let rest = path.strip_prefix(&self.root).or_else(|_| path.strip_prefix(&self.real)).ok()?;
        Some(if rest.as_os_str().is_empty() { Path::new(".") } else { rest })
    }

    pub(super) fn walk(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut todo = names(relative);
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == OsStr::new("..") {
                above.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            let here = above.last().unwrap_or(&self.handle);
            match read_link(here, &name)? {
                Some(target) => {
                    links += 1;
                    if links > LINKS_MAX {
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
        openat(above.last().unwrap_or(&self.handle), ".", flags, Mode::empty())
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Where a name points when it is a symbolic link; the link is judged by its own descriptor.
pub(crate) fn read_link(directory: impl AsFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(directory, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    let target = readlinkat(&handle, "", Vec::new())?;
    Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes()))))
}
