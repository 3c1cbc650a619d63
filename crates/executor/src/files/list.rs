//! Listing directories.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::{Dir, FileType, Stat},
    io::Errno,
};

use super::{FilePath, Files, Opened, Workspace, printable};

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
    pub fn list(&self, path: Option<&str>) -> Vec<String> {
        let directory = self.workspace.working_dir();
        let path = match path {
            None | Some("") => ".",
            Some(path) => path,
        };
        let Ok(path) = FilePath::locate(path, directory) else { return Vec::new() };
        let Ok(Opened::Directory(handle)) = self.workspace.open(&path) else { return Vec::new() };
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        for (name, kind) in entries(&self.workspace, &path, handle) {
            match kind {
                EntryKind::Directory => directories.push(format!("{}/", printable(&name))),
                EntryKind::File => files.push(printable(&name)),
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
pub(crate) fn entries(
    workspace: &Workspace,
    path: &FilePath,
    handle: OwnedFd,
) -> Vec<(OsString, EntryKind)> {
    let mut found = Vec::new();
    let Ok(directory) = Dir::new(handle) else { return found };
    for entry in directory {
        let Ok(entry) = entry else { break };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == ENTRIES_MAX {
            tracing::warn!(path = path.shown(), limit = ENTRIES_MAX, "directory listing was cut");
            break;
        }
        let kind = match entry.file_type() {
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink | FileType::Unknown => target_kind(workspace, path, name),
            _ => EntryKind::File,
        };
        found.push((name.to_owned(), kind));
    }
    found
}

fn target_kind(workspace: &Workspace, path: &FilePath, name: &OsStr) -> EntryKind {
    let is_directory =
        |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    match workspace.stat_entry(path, name) {
        Ok(stat) if is_directory(&stat) => EntryKind::Directory,
        Ok(_) => EntryKind::File,
        Err(Errno::ACCESS) => EntryKind::File,
        Err(_) => EntryKind::Dangling,
    }
}
