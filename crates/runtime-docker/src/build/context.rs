//! A directory as a build context.
//!
//! It is walked by handles and no link is followed, so that nothing outside of it comes along,
//! whatever happens to it meanwhile.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::{
    BuildError,
    ignore::Ignore,
    pack::{Attributes, Packer, dockerfile_text},
};

const IGNORE_FILE: &str = ".dockerignore";
/// The largest `.dockerignore` that is read, and the deepest directory.
const IGNORE_BYTES_MAX: u64 = 1024 * 1024;
const DEPTH_MAX: usize = 128;

/// Packs a directory, and returns the text of its Dockerfile, when one is named.
pub(super) fn pack(
    directory: &Path,
    dockerfile: Option<&Path>,
    prefix: &Path,
    packer: &mut Packer,
) -> Result<Option<String>, BuildError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = sys::open(directory, flags, Mode::empty());
    let handle = opened.map_err(|error| unreadable(directory, error.into()))?;
    if !prefix.as_os_str().is_empty() {
        // It is there also when nothing is in it.
        let found = sys::fstat(&handle).map_err(|error| unreadable(directory, error.into()))?;
        packer.directory(prefix, attributes(&found))?;
    }
    let mut walk = Walk {
        ignore: read_ignore(&handle, directory)?,
        dockerfile,
        found: None,
        prefix,
        packer,
    };
    walk.directory(&handle, Path::new(""), 0)?;
    Ok(walk.found)
}

struct Walk<'a> {
    ignore: Ignore,
    dockerfile: Option<&'a Path>,
    /// The text of the Dockerfile.
    found: Option<String>,
    /// Where in the archive everything lies.
    prefix: &'a Path,
    packer: &'a mut Packer,
}

impl Walk<'_> {
    fn directory(&mut self, handle: &OwnedFd, path: &Path, depth: usize) -> Result<(), BuildError> {
        if depth > DEPTH_MAX {
            let reason = format!("it has more than {DEPTH_MAX} directories in each other");
            return Err(BuildError::context(reason));
        }
        for name in names(handle).map_err(|error| unreadable(path, error))? {
            self.entry(handle, &name, &path.join(&name), depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), BuildError> {
        let failed = |error: rustix::io::Errno| unreadable(path, error.into());
        let found = sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        // The Engine reads this one whatever is left out, and so does whoever checks it.
        let is_dockerfile = self.dockerfile == Some(path);
        let is_out = self.ignore.leaves_out(path) && !is_dockerfile;
        let kind = FileType::from_raw_mode(found.st_mode);
        let leads_on =
            self.ignore.takes_back() || self.dockerfile.is_some_and(|it| it.starts_with(path));
        if is_out && !(kind == FileType::Directory && leads_on) {
            return Ok(());
        }
        let open = |flags| {
            let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            sys::openat(parent, name, flags, Mode::empty()).map_err(failed)
        };
        let place = self.prefix.join(path);
        match kind {
            FileType::Directory => {
                let handle = open(OFlags::DIRECTORY)?;
                if !is_out {
                    self.packer.directory(&place, attributes(&found))?;
                }
                self.directory(&handle, path, depth + 1)
            }
            FileType::Symlink if is_dockerfile => Err(BuildError::dockerfile("it is a link")),
            FileType::Symlink => {
                let target = sys::readlinkat(parent, name, Vec::new()).map_err(failed)?;
                let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
                self.packer.link(&place, &target, attributes(&found))
            }
            FileType::RegularFile => {
                // It may have become a pipe meanwhile, which nobody may wait for.
                let file = File::from(open(OFlags::NONBLOCK)?);
                self.file(file, path, &place, is_dockerfile)
            }
            _ => {
                self.packer.leave_out();
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        file: File,
        path: &Path,
        place: &Path,
        is_dockerfile: bool,
    ) -> Result<(), BuildError> {
        let found = sys::fstat(&file).map_err(|error| unreadable(path, error.into()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            let error = io::Error::other("it was replaced while it was read");
            return Err(unreadable(path, error));
        }
        if is_dockerfile {
            let text = dockerfile_text(path, file)?;
            let length = text.len() as u64;
            self.packer
                .file(place, attributes(&found), length, text.as_bytes())?;
            self.found = Some(text);
            return Ok(());
        }
        let length = u64::try_from(found.st_size).unwrap_or_default();
        self.packer.file(place, attributes(&found), length, file)
    }
}

/// In a fixed order, so that the same files always make the same archive.
fn names(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn attributes(found: &Stat) -> Attributes {
    Attributes {
        mode: found.st_mode,
        modified: u64::try_from(found.st_mtime).unwrap_or_default(),
    }
}

fn read_ignore(directory: &OwnedFd, path: &Path) -> Result<Ignore, BuildError> {
    use std::io::Read as _;

    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let place = || path.join(IGNORE_FILE);
    let file = match sys::openat(directory, IGNORE_FILE, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(Ignore::default()),
        Err(error) => return Err(unreadable(&place(), error.into())),
    };
    let mut text = String::new();
    let read = file.take(IGNORE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(&place(), error))?;
    if text.len() as u64 > IGNORE_BYTES_MAX {
        let reason = format!("its {IGNORE_FILE} has more than {IGNORE_BYTES_MAX} bytes");
        return Err(BuildError::context(reason));
    }
    Ignore::parse(&text)
}

fn unreadable(path: &Path, source: io::Error) -> BuildError {
    BuildError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
