//! The directory that an agent works in, and the names in it that other programs of this machine
//! act on.
//!
//! A workspace whose changes reach the machine is more than files: git runs hooks and what its
//! configuration names, editors run tasks, shells load `.envrc`. Names of the setting
//! `native.guarded_names` can be neither changed nor made inside (NS-6): what is missing is stood in for
//! by an empty directory (`stand_in`). In a repository the same holds for `.git/hooks` and `.git/config`,
//! which are made, empty, where a `.git` lacks them. An agent can still make a repository in a directory
//! that was none, with hooks in it, unless `.git` is one of the names; a repository further below; and in
//! a repository the file `.git/commondir`, which points git to another configuration. An operator who wants
//! none of that chooses to copy on write, where a person looks at changes before they reach the machine.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chownat, mkdirat, openat};
use rustix::fs::{Gid, Uid};
use zareba_confine::{Access, Entry, EntryKind, Layer, Lower, Overlay};

use super::{Request, WORKSPACE, WorkspaceMode, entry, owned_alike, places::Places, stand_in};

/// Names in a repository that git acts on; those of its submodules are as powerful as its own.
const ACTED_ON_BY_GIT: [&str; 3] = ["config", "hooks", "modules"];

/// The workspace, what is kept from being changed in it, and the lock that keeps it so.
pub(super) fn entries(
    places: &Places,
    request: &Request<'_>,
) -> io::Result<(Vec<Entry>, Option<File>)> {
    let mut entries = Vec::new();
    let mut lock = None;
    let kind = match (request.workspace, request.mode) {
        // Nothing is below it, so it needs no layer.
        (None, _) => places.own("workspace")?,
        (Some(source), WorkspaceMode::CopyOnWrite) => overlay(
            places,
            Lower {
                path: source.to_owned(),
                owner: owned_alike(source)?,
                is_direct: true,
            },
        )?,
        (Some(source), WorkspaceMode::ReadOnly) => read_only(places, source)?,
        (Some(source), WorkspaceMode::ReadWrite) => {
            if !request.guarded.is_empty() {
                lock = stand_in::make(source, request.guarded, request.directory)?;
            }
            entries = guarded(source, request.guarded)?;
            bind(source, Access::ReadWrite)?
        }
    };
    entries.insert(0, entry(WORKSPACE, kind));
    Ok((entries, lock))
}

fn overlay(places: &Places, lower: Lower) -> io::Result<EntryKind> {
    Ok(EntryKind::Overlay(Overlay {
        lower: vec![lower],
        layer: Some(Layer::Directory(places.layer("workspace")?)),
        own: Vec::new(),
    }))
}

/// Through an overlay, even one that nothing can be changed in, sockets of the machine have nobody
/// behind them (NS-4). It needs something to lie on.
fn read_only(places: &Places, source: &Path) -> io::Result<EntryKind> {
    let source = Lower {
        path: source.to_owned(),
        owner: owned_alike(source)?,
        is_direct: true,
    };
    Ok(EntryKind::Overlay(Overlay {
        lower: vec![source, places.empty()?],
        layer: None,
        own: Vec::new(),
    }))
}

fn bind(source: &Path, access: Access) -> io::Result<EntryKind> {
    Ok(EntryKind::Bind {
        source: source.to_owned(),
        access,
        owner: owned_alike(source)?,
        is_direct: true,
    })
}

/// Names that cannot be changed in a workspace that can.
fn guarded(source: &Path, names: &[String]) -> io::Result<Vec<Entry>> {
    let inside = Path::new(WORKSPACE);
    let mut entries = Vec::new();
    for name in names {
        if is_there(&source.join(name))?.is_some() {
            entries.push(again(&inside.join(name), Access::ReadOnly));
        }
    }
    let git = inside.join(".git");
    if names.iter().any(|name| name == ".git") {
        return Ok(entries);
    }
    match is_there(&source.join(".git"))? {
        None => {}
        // The place of a repository that is somewhere else, as in a second working tree.
        Some(Kind::File) => entries.push(again(&git, Access::ReadOnly)),
        Some(Kind::Directory) => {
            complete_repository(&source.join(".git"))?;
            // Without a mount of its own it could be moved away, with all that is mounted in it.
            entries.push(again(&git, Access::ReadWrite));
            for name in ACTED_ON_BY_GIT {
                if is_there(&source.join(".git").join(name))?.is_some() {
                    entries.push(again(&git.join(name), Access::ReadOnly));
                }
            }
        }
    }
    Ok(entries)
}

fn again(inside: &Path, access: Access) -> Entry {
    entry(inside, EntryKind::Again { access })
}

enum Kind {
    File,
    Directory,
}

/// What is at a path that shall be mounted on, which cannot be a link: whoever can change the
/// directory could point it elsewhere.
fn is_there(path: &Path) -> io::Result<Option<Kind>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(Some(Kind::Directory)),
        Ok(found) if found.is_file() => Ok(Some(Kind::File)),
        Ok(_) => Err(io::Error::other(format!(
            "`{}` is neither a file nor a directory, and so cannot be kept from being changed: \
             remove it, or choose a workspace that is copied on write",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes what git would look for, so that there is something to guard.
///
/// Another sandbox may be at work in the same directory, so no link is followed.
fn complete_repository(git: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner = fs::symlink_metadata(git)?;
    let directory = openat(CWD, git, flags, Mode::empty())?;
    let give = |name: &str| {
        let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
        chownat(
            &directory,
            name,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    };
    match mkdirat(&directory, "hooks", Mode::from_raw_mode(0o755)) {
        Ok(()) => give("hooks")?,
        Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(&directory, "config", flags, Mode::from_raw_mode(0o644)) {
        Ok(_) => give("config")?,
        Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
