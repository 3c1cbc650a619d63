//! Files without a name that a sandbox's processes still hold open (NS-16).
//!
//! A walk through directories cannot find them, so they are found where they are held: in the
//! descriptor tables of the threads, and, as root, in their mappings. A file counts once, however
//! many processes hold it. What lies in memory is bounded with the memory. A descriptor that is on its
//! way through a socket is in no table until it is received: a socket in which descriptors wait from one look
//! to the next counts as a place that could not be looked into.
//!
//! Without root, a process that may not be dumped shows its table to nobody. Such a process counts as a
//! place that could not be looked into, from the second look on: every process is one for a moment,
//! between the executor's fork and its program.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::Instant,
};

use super::Held;
use crate::native::memory::family;

/// How the kernel ends the name of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// The kind of an overlay's file system.
const OVERLAY: u64 = 0x794c_7630;

/// Finds the unnamed files of one sandbox.
#[derive(Debug)]
pub(super) struct Unlinked {
    /// Its first process.
    init: i32,
    /// Ours, which never show theirs.
    executor: i32,
    /// The file system of the layers.
    device: Option<u64>,
    /// Processes that showed nothing the last time.
    hidden: HashSet<i32>,
    /// Sockets in which descriptors waited the last time, by their numbers.
    carrying: HashSet<u64>,
}

/// What one look has found so far.
#[derive(Debug, Default)]
struct Found {
    held: Held,
    files: HashSet<(u64, u64)>,
    hidden: HashSet<i32>,
    sockets: HashSet<u64>,
    carrying: HashSet<u64>,
}

impl Unlinked {
    pub(super) fn of(init: i32, executor: i32, layers: &Path) -> Self {
        let device = fs::metadata(layers).map(|found| found.dev());
        Self {
            init,
            executor,
            hidden: HashSet::new(),
            carrying: HashSet::new(),
            device: device.ok(),
        }
    }

    /// What they hold, or as much of it as can be found until then.
    pub(super) fn held(&mut self, until: Instant) -> Held {
        let mut found = Found::default();
        for pid in family(self.init) {
            let is_ours = pid == self.init || pid == self.executor;
            for table in tables(pid) {
                let entries = fs::read_dir(&table);
                let is_of_descriptors = table.ends_with("fd");
                let is_denied = is_of_descriptors && entries.as_ref().is_err_and(is_denied);
                if is_denied && !is_ours && found.hidden.insert(pid) {
                    found.held.unseen += u64::from(self.hidden.contains(&pid));
                }
                for entry in entries.into_iter().flatten().flatten() {
                    if Instant::now() >= until {
                        // The rest was not looked at, and nothing is known of two looks in a row.
                        (self.hidden, self.carrying) = Default::default();
                        found.held.unseen += 1;
                        return found.held;
                    }
                    self.add(&entry.path(), &mut found);
                }
            }
        }
        (self.hidden, self.carrying) = (found.hidden, found.carrying);
        found.held
    }

    fn add(&self, entry: &Path, found: &mut Found) {
        let Ok(name) = fs::read_link(entry) else {
            return;
        };
        if let Some(socket) = socket_number(name.as_os_str()) {
            if found.sockets.insert(socket) && carries_descriptors(entry) {
                found.held.unseen += u64::from(self.carrying.contains(&socket));
                found.carrying.insert(socket);
            }
            return;
        }
        if !is_deleted(name.as_os_str()) {
            return;
        }
        let Ok(file) = fs::metadata(entry) else {
            return;
        };
        let is_nameless = file.is_file() && file.nlink() == 0;
        let is_new = is_nameless && found.files.insert((file.dev(), file.ino()));
        if is_new && (self.device == Some(file.dev()) || is_in_overlay(entry)) {
            found.held.bytes = found.held.bytes.saturating_add(file.blocks() * 512);
            found.held.inodes += 1;
        }
    }
}

/// The number of a socket, by the name that its descriptor has.
fn socket_number(name: &OsStr) -> Option<u64> {
    let name = name.to_str()?.strip_prefix("socket:[")?;
    name.strip_suffix(']')?.parse().ok()
}

/// Whether descriptors wait in a socket for its reader. A kernel before 5.11 does not say.
fn carries_descriptors(entry: &Path) -> bool {
    let number = entry.file_name();
    let table = entry.parent().and_then(Path::parent);
    let Some((number, table)) = number.zip(table) else {
        return false;
    };
    let text = fs::read_to_string(table.join("fdinfo").join(number)).unwrap_or_default();
    let waiting = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    waiting.is_some_and(|count| count.trim() != "0")
}

/// Where the kernel lists what a process holds. A thread can have a table of descriptors of its own, and the
/// first thread may have ended before the others.
fn tables(pid: i32) -> Vec<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let threads = fs::read_dir(process.join("task"));
    let threads = threads.into_iter().flatten().flatten();
    let mut tables: Vec<PathBuf> = threads.map(|thread| thread.path().join("fd")).collect();
    tables.push(process.join("map_files"));
    tables
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn is_deleted(name: &OsStr) -> bool {
    name.as_bytes().ends_with(DELETED)
}

fn is_in_overlay(entry: &Path) -> bool {
    let found = rustix::fs::statfs(entry);
    found.is_ok_and(|found| u64::try_from(found.f_type) == Ok(OVERLAY))
}
