//! What a sandbox may put on this machine's disk (NS-16).
//!
//! The layers that take a sandbox's changes lie in a file system that others use as well, and
//! few of these know quotas for a directory. So the supervisor looks: often while the file system
//! is filling, seldom when nothing changes there, and never longer than a twentieth of the time.
//! When the layers are too large and still growing, whoever could be writing is killed. A single
//! file cannot outgrow the limit meanwhile: the kernel refuses that by itself.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long to wait between two looks while something is written, and while nothing is.
const OFTEN: Duration = Duration::from_millis(200);
const SELDOM: Duration = Duration::from_secs(2);

/// A look is followed by a pause of so many times its duration.
const REST: u32 = 20;

/// Even when the file system as a whole does not grow, because others remove as much as the
/// sandbox writes, the layers are looked through after so many glances at it.
const GLANCES_MAX: u32 = 16;

/// Directories deeper than this are counted as one: nobody needs them, and they cost time.
const DEPTH_MAX: usize = 256;

/// The file that tells how often the limit was passed.
pub(super) const COUNTER: &str = "disk-limit";

/// What the layers may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimit {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// What they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

/// Watches the layers of one sandbox.
#[derive(Debug)]
pub(super) struct DiskWatch {
    layers: PathBuf,
    limit: DiskLimit,
    /// What was there before the sandbox.
    base: Held,
    counter: File,
    exceeded: u64,
    held: Held,
    free: Option<Held>,
    glances: u32,
    next: Instant,
}

impl DiskWatch {
    /// Begins to watch what is below `layers`, and tells of it in `directory`.
    pub(super) fn begin(directory: &Path, layers: PathBuf, limit: DiskLimit) -> io::Result<Self> {
        let counter = File::create_new(directory.join(COUNTER))?;
        counter.write_all_at(b"0", 0)?;
        Ok(Self {
            base: measure(&layers),
            free: free(&layers),
            layers,
            limit,
            counter,
            exceeded: 0,
            held: Held::default(),
            glances: 0,
            next: Instant::now() + OFTEN,
        })
    }

    /// How long until it is time to look.
    pub(super) fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, when it is time to. Says whether the limit is passed and the layers still grow.
    pub(super) fn look(&mut self) -> bool {
        if !self.due_in().is_zero() {
            return false;
        }
        let free = free(&self.layers);
        let filling = match (free, self.free) {
            (Some(now), Some(before)) => now.bytes < before.bytes || now.inodes < before.inodes,
            _ => true,
        };
        self.free = free;
        self.glances += 1;
        if !filling && self.glances < GLANCES_MAX {
            self.next = Instant::now() + SELDOM;
            return false;
        }
        self.glances = 0;
        let begun = Instant::now();
        let held = measure(&self.layers);
        let grew = held.bytes > self.held.bytes || held.inodes > self.held.inodes;
        self.held = held;
        self.next = Instant::now() + (begun.elapsed() * REST).max(OFTEN);
        let bytes = held.bytes.saturating_sub(self.base.bytes);
        let inodes = held.inodes.saturating_sub(self.base.inodes);
        grew && (bytes > self.limit.bytes || inodes > self.limit.inodes)
    }

    /// Notes that it came to that. To be called before anybody can notice the consequences.
    pub(super) fn note(&mut self) {
        self.exceeded += 1;
        // The number only ever gets longer, so no old digit stays behind the new ones.
        let _ = self
            .counter
            .write_all_at(self.exceeded.to_string().as_bytes(), 0);
    }
}

/// What the file system below `path` still has; `None` when it does not say.
fn free(path: &Path) -> Option<Held> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Held {
        bytes: found.f_bfree.saturating_mul(found.f_frsize),
        inodes: found.f_ffree,
    })
}

/// What is below `root`. What is removed meanwhile is left out.
pub(super) fn measure(root: &Path) -> Held {
    let mut held = Held::default();
    let mut pending = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            held.inodes += 1;
            // A file with several names takes its space once.
            let names = if found.is_dir() {
                1
            } else {
                found.nlink().max(1)
            };
            held.bytes += found.blocks() * 512 / names;
            if found.is_dir() && depth < DEPTH_MAX {
                pending.push((entry.path(), depth + 1));
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: DiskLimit = DiskLimit {
        bytes: 1024 * 1024,
        inodes: 10,
    };

    fn watch(place: &Path) -> DiskWatch {
        let layers = place.join("layer");
        fs::create_dir(&layers).unwrap();
        DiskWatch::begin(place, layers, LIMIT).unwrap()
    }

    /// A look now, whatever the file system as a whole does.
    fn look(watch: &mut DiskWatch) -> bool {
        watch.next = Instant::now();
        watch.free = None;
        watch.look()
    }

    #[test]
    fn bytes_up_to_the_limit_are_fine_and_past_it_are_told_while_they_grow_ns_16() {
        let place = tempfile::tempdir().unwrap();
        let mut watch = watch(place.path());
        let file = place.path().join("layer/file");
        fs::write(&file, vec![1; 1024 * 1024 - 64 * 1024]).unwrap();
        assert!(!look(&mut watch));
        fs::write(place.path().join("layer/more"), vec![1; 256 * 1024]).unwrap();
        assert!(look(&mut watch));
        // Whoever cleans up is left alone, also before there is enough room again.
        assert!(!look(&mut watch));
        fs::write(&file, vec![1; 1024 * 1024 - 128 * 1024]).unwrap();
        assert!(!look(&mut watch));
    }

    #[test]
    fn files_are_counted_with_directories_and_hard_links_ns_16() {
        let place = tempfile::tempdir().unwrap();
        let mut watch = watch(place.path());
        for number in 0..9 {
            fs::create_dir(place.path().join(format!("layer/{number}"))).unwrap();
        }
        fs::write(place.path().join("layer/0/file"), "").unwrap();
        assert!(!look(&mut watch));
        fs::hard_link(
            place.path().join("layer/0/file"),
            place.path().join("layer/1/link"),
        )
        .unwrap();
        assert!(look(&mut watch));
        assert_eq!(measure(&place.path().join("layer")).inodes, 11);
    }

    #[test]
    fn the_counter_tells_how_often() {
        let place = tempfile::tempdir().unwrap();
        let mut watch = watch(place.path());
        let told = || fs::read_to_string(place.path().join(COUNTER)).unwrap();
        assert_eq!(told(), "0");
        for _ in 0..11 {
            watch.note();
        }
        assert_eq!(told(), "11");
    }

    #[test]
    fn a_look_that_is_not_due_costs_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut watch = watch(place.path());
        assert!(!watch.look());
        assert_eq!(watch.glances, 0);
        assert!(watch.due_in() > Duration::ZERO);
    }
}
