//! Listing: a page of a directory, sorted, without holding more names than the page has (FA-4).

use std::{
    collections::BinaryHeap,
    ffi::OsString,
    os::{fd::AsFd, unix::ffi::OsStrExt as _},
};

use rustix::io::Errno;
use zareba_wire::files::{EntryPage, FileEntry, FileError, LIST_LIMIT_MAX, ListRequest};

use super::{
    Place, Shared,
    failure::{os, refused},
};
use crate::files::{Opened, entries, meant_path, printable};

/// Names that are looked at for one page. A directory with more was filled to hurt.
const NAMES_MAX: usize = 1_000_000;

impl Shared {
    pub(super) fn list(&self, request: &ListRequest) -> Result<EntryPage, FileError> {
        let path = self.locate(&request.path)?;
        let directory = match self.workspace.open(&path).map_err(refused)? {
            Opened::Directory(directory) => directory,
            Opened::File(_) => return Err(os(Errno::NOTDIR, path.shown())),
        };
        let limit = request.limit.clamp(1, LIST_LIMIT_MAX);
        let after = request.after.as_deref().map(meant_path);
        let after = after.map(|after| after.into_os_string());
        let (mut names, truncated) =
            first_names(&directory, after, limit + 1).map_err(|errno| os(errno, path.shown()))?;
        let more = names.len() > limit;
        names.truncate(limit);
        let next = more.then(|| names.last().map(|name| printable(name).into_owned()));
        let mut page = EntryPage {
            entries: Vec::with_capacity(names.len()),
            next: next.flatten(),
            truncated,
        };
        let mut place = Place {
            directory,
            name: OsString::new(),
            shown: path.shown().to_owned(),
        };
        for name in names {
            place.name = name;
            // What went away meanwhile is left out.
            if let Ok(status) = place.status() {
                let name = printable(&place.name).into_owned();
                page.entries.push(FileEntry { name, status });
            }
        }
        Ok(page)
    }
}

/// The first names behind `after` in the order of their bytes, and whether some were not looked
/// at. What is held is bounded by `count`, whatever the directory holds.
fn first_names(
    directory: impl AsFd,
    after: Option<OsString>,
    count: usize,
) -> Result<(Vec<OsString>, bool), Errno> {
    let mut heap = BinaryHeap::with_capacity(count + 1);
    let mut seen = 0_usize;
    for entry in entries(directory)? {
        let (name, _) = entry?;
        seen += 1;
        if seen > NAMES_MAX {
            break;
        }
        if after
            .as_ref()
            .is_some_and(|after| name.as_bytes() <= after.as_bytes())
        {
            continue;
        }
        heap.push(name);
        if heap.len() > count {
            heap.pop();
        }
    }
    Ok((heap.into_sorted_vec(), seen > NAMES_MAX))
}
