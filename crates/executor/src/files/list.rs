//! Listing directories.

use std::{
    ffi::{OsStr, OsString},
    os::fd::AsFd,
};

use rustix::{
    fs::{FileType, Stat},
    io::Errno,
};

use super::{FilePath, Files, Opened, Workspace, entries::entries, name::printable};

/// More names than anybody reads; a directory that a program filled must not fill our memory.
const ENTRIES_MAX: usize = 100_000;

/// What an entry of a directory leads to, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Directory,
    /// Anything else that is there.
    File,
    /// A link to nothing, or to something that may not be reached.
    Dangling,
}

impl Files {
    /// Names in a directory, directories first and marked by a slash, each group sorted without
    /// regard to case. What is no directory has no names.
    pub(crate) fn list(&self, path: Option<&str>) -> Vec<String> {
        let directory = self.workspace.working_dir();
        let path = match path {
            None | Some("") => ".",
            Some(path) => path,
        };
        let Ok(path) = FilePath::locate(path, directory) else {
            return Vec::new();
        };
        let Ok(Opened::Directory(handle)) = self.workspace.open(&path) else {
            return Vec::new();
        };
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        for (name, kind) in listing(&self.workspace, &path, handle) {
            match kind {
                EntryKind::Directory => directories.push(format!("{}/", printable(&name))),
                EntryKind::File => files.push(printable(&name).into_owned()),
                EntryKind::Dangling => {}
            }
        }
        for group in [&mut directories, &mut files] {
            group.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
        }
        directories.append(&mut files);
        directories
    }
}

/// The entries of an open directory in no order, at most [`ENTRIES_MAX`] of them.
pub(crate) fn listing(
    workspace: &Workspace,
    path: &FilePath,
    handle: impl AsFd,
) -> Vec<(OsString, EntryKind)> {
    let mut found = Vec::new();
    let Ok(names) = entries(handle) else {
        return found;
    };
    for entry in names {
        let Ok((name, kind)) = entry else { break };
        if found.len() == ENTRIES_MAX {
            tracing::warn!(
                path = path.shown(),
                limit = ENTRIES_MAX,
                "directory listing was cut"
            );
            break;
        }
        let kind = match kind {
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => target_kind(workspace, path, &name),
            _ => EntryKind::File,
        };
        found.push((name, kind));
    }
    found
}

fn target_kind(workspace: &Workspace, path: &FilePath, name: &OsStr) -> EntryKind {
    let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    match workspace.stat_entry(path, name) {
        Ok(stat) if is_directory(&stat) => EntryKind::Directory,
        Ok(_) => EntryKind::File,
        Err(Errno::ACCESS) => EntryKind::File,
        Err(_) => EntryKind::Dangling,
    }
}
