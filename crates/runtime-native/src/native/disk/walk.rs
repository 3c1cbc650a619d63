//! Adding up what a tree holds while its owner goes on changing it.
//!
//! The owner would like to hide something: below many levels, behind long paths, in directories
//! that cannot be opened. So names are only looked up in directories that are open, no link is
//! followed, there is no depth that is not reached, and what could not be seen is told. Nothing
//! of the owner's is changed for that.
//!
//! Only the directories near the root stay open. A deeper one is found again from below, and
//! checked to be the same; if it was moved meanwhile, the rest of it counts as not seen.

use std::{
    ffi::CStr,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::Instant,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Statx, StatxFlags, openat, seek,
        statx,
    },
    io::Errno,
};

/// So many directories stay open, and not many more.
const OPEN_MAX: usize = 64;

/// Bytes of names that are read at once. Little, because what follows the name of a directory is
/// read again after that has been looked through.
const NAMES_BYTES: usize = 4096;

/// Deepest nesting, by which the memory is bounded: some dozens of bytes each. What is below
/// counts as not seen.
const DEPTH_MAX: usize = 1024 * 1024;

/// What a tree holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::native) struct Held {
    pub(in crate::native) bytes: u64,
    pub(in crate::native) inodes: u64,
    /// Places that could not be looked into.
    pub(in crate::native) unseen: u64,
}

impl Held {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
            unseen: self.unseen.saturating_add(other.unseen),
        }
    }
}

/// Which directory it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
}

/// Whether a walk has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Finished,
    /// The time was up.
    Interrupted,
}

/// A walk through a tree, which can be interrupted and go on later.
#[derive(Debug)]
pub(super) struct Walk {
    held: Held,
    /// Directories whose own closed subdirectories nobody expects to see.
    closed: Vec<Identity>,
    /// From the root to where the walk is. The last one is open.
    way: Vec<Station>,
}

#[derive(Debug)]
struct Station {
    directory: Option<OwnedFd>,
    identity: Identity,
    /// Behind the last name that was read.
    position: u64,
}

/// Where a directory leads.
enum Next {
    Below(Station),
    Above,
    TimeIsUp,
}

impl Walk {
    /// Begins at a directory. Subdirectories of `closed` ones need not be readable.
    pub(super) fn begin(root: &Path, closed: Vec<Identity>) -> Self {
        let station = open(CWD, root).and_then(Station::at);
        Self {
            held: Held {
                unseen: u64::from(station.is_err()),
                ..Held::default()
            },
            closed,
            way: station.into_iter().collect(),
        }
    }

    /// What was found so far.
    pub(super) fn held(&self) -> Held {
        self.held
    }

    /// Goes on, for ever or until it is time to do something else.
    pub(super) fn proceed(&mut self, until: Option<Instant>) -> Progress {
        while let Some(here) = self.way.last_mut() {
            match here.look_through(&mut self.held, &self.closed, until) {
                Next::Below(below) => self.enter(below),
                Next::Above => self.leave(),
                Next::TimeIsUp => return Progress::Interrupted,
            }
        }
        Progress::Finished
    }

    fn enter(&mut self, below: Station) {
        let depth = self.way.len();
        if depth >= DEPTH_MAX {
            self.held.unseen += 1;
            return;
        }
        if let Some(here) = self.way.last_mut().filter(|_| depth > OPEN_MAX) {
            here.directory = None;
        }
        self.way.push(below);
    }

    /// Goes back to the directory above, or to the nearest that can be found again.
    fn leave(&mut self) {
        let Some(left) = self.way.pop().and_then(|station| station.directory) else {
            return;
        };
        if let Some(above) = self.way.last_mut().filter(|it| it.directory.is_none()) {
            let found = open(&left, "..").and_then(Station::at);
            let same = found.ok().filter(|found| found.identity == above.identity);
            above.directory = same.and_then(|found| found.directory);
        }
        while self.way.last().is_some_and(|it| it.directory.is_none()) {
            self.held.unseen += 1;
            self.way.pop();
        }
    }
}

impl Station {
    fn at(directory: OwnedFd) -> Result<Self, Errno> {
        let found = statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        Ok(Self {
            directory: Some(directory),
            identity: identity(&found),
            position: 0,
        })
    }

    /// Adds up what is here, up to the next directory. What is removed meanwhile is left out.
    fn look_through(
        &mut self,
        held: &mut Held,
        closed: &[Identity],
        until: Option<Instant>,
    ) -> Next {
        let Some(directory) = &self.directory else {
            return Next::Above;
        };
        if seek(directory, SeekFrom::Start(self.position)).is_err() {
            held.unseen += 1;
            return Next::Above;
        }
        let mut names = [MaybeUninit::uninit(); NAMES_BYTES];
        let mut names = RawDir::new(directory, &mut names);
        while let Some(entry) = names.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                // It has been removed.
                Err(Errno::NOENT) => break,
                Err(_) => {
                    held.unseen += 1;
                    break;
                }
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Next::TimeIsUp;
            }
            self.position = entry.next_entry_cookie();
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match held.add(directory, name) {
                Ok(Some(below)) => return Next::Below(below),
                Ok(None) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) if closed.contains(&self.identity) => {}
                Err(_) => held.unseen += 1,
            }
        }
        Next::Above
    }
}

impl Held {
    /// Counts what has a name, and opens it if it is a directory.
    fn add(&mut self, parent: &OwnedFd, name: &CStr) -> Result<Option<Station>, Errno> {
        let found = statx(
            parent,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BASIC_STATS,
        )?;
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        let is_directory = kind == FileType::Directory;
        // A file with several names takes its space once.
        let names = if is_directory {
            1
        } else {
            found.stx_nlink.max(1)
        };
        let bytes = found.stx_blocks.saturating_mul(512) / u64::from(names);
        self.bytes = self.bytes.saturating_add(bytes);
        self.inodes += 1;
        if !is_directory {
            return Ok(None);
        }
        open(parent, name).and_then(Station::at).map(Some)
    }
}

/// Which directory a path leads to; none if it leads elsewhere.
pub(super) fn identify(directory: &Path) -> Option<Identity> {
    let station = open(CWD, directory).and_then(Station::at);
    station.ok().map(|station| station.identity)
}

fn identity(found: &Statx) -> Identity {
    Identity {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
    }
}

fn open(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
