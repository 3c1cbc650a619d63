//! What a sandbox may put on this machine's disk (NS-16).
//!
//! The layers that take a sandbox's changes lie in a file system that others use as well, and
//! few of these know quotas for a directory. So the supervisor looks: often while the file system
//! is filling, seldom when nothing changes there, not at all while nothing in the sandbox has run
//! since it last looked, never long at a time and with pauses between,
//! which are shorter when the limit is close. When the layers are too large and still growing,
//! whoever could be writing is killed. What is there then is looked at once more, at once: whoever
//! was killed had gone on writing until then, and whoever cleans up must not be killed for that. When
//! they grow by much more all the same, as by short commands one after another, the sandbox is ended. A
//! single file cannot outgrow the limit meanwhile: the kernel refuses that by itself.
//!
//! Directories that cannot be opened hide what is in them, except when we are root, and so do processes
//! that may not be dumped. Where there are such, what the whole file system has lost since the beginning
//! counts instead, also what others took of it. Files without a name that are still open are found in the
//! processes that hold them (`unlinked`).
//!
//! Design: docs/design/disk-watch.md.

mod unlinked;
mod walk;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use zareba_confine::{Entry, EntryKind, Layer, Overlay, Root};

use unlinked::Unlinked;
pub(super) use walk::Held;
use walk::{Identity, Progress, Walk, identify};

/// How long to wait between two looks while something is written: as long as it takes to fill what is
/// left of the limit, but not less than this. And how long at most while nothing is.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(2);

/// As fast as anybody can write to memory, which is where files are before they are on the disk,
/// and as fast as anybody can make files.
const BYTES_PER_MILLISECOND: u64 = 4 * 1024 * 1024;
const INODES_PER_MILLISECOND: u64 = 100;

/// A look is followed by a pause of so many times its duration.
const REST: u32 = 20;

/// The longest pause, and the longest when more than half of the limit is used: what can be
/// written meanwhile comes on top of it.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_MAX_WHEN_CLOSE: Duration = Duration::from_secs(1);

/// The longest look. The next one goes on where it ended.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// How long somebody who asks may wait for an answer, which then is too small.
const MEASURE_MAX: Duration = Duration::from_secs(2);

/// Even when the file system as a whole does not grow, because others remove as much as the
/// sandbox writes, the layers are looked through after so many glances at it.
const GLANCES_MAX: u32 = 16;

/// By so much may layers that are too large grow before anybody is killed once more: the executor keeps
/// something on the disk for each of its shells.
const LEEWAY: DiskLimit = DiskLimit {
    bytes: 1024 * 1024,
    inodes: 64,
};

/// So much may come on top of what was there when the limit was first passed: a quarter of the limit, but not
/// less than this. Whoever goes on writing although what wrote was killed does not stop by itself.
const MORE_PART: u64 = 4;
const MORE_MIN: DiskLimit = DiskLimit {
    bytes: 64 * 1024 * 1024,
    inodes: 4096,
};

/// Where not everything could be seen or walked through, this many kills in a row count instead: each within
/// [`ROW`] of the one before it.
const KILLS_MAX: u32 = 32;
const ROW: Duration = Duration::from_secs(60);

/// The file that tells how often the limit was passed, and by this word that the sandbox was ended for it.
pub(super) const COUNTER: &str = "disk-limit";
const ENDED: &str = "ended";

/// What the layers may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimit {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

impl DiskLimit {
    pub(super) const NOTHING: Self = Self {
        bytes: 0,
        inodes: 0,
    };

    /// What was found, and a little more.
    fn just_above(found: Held) -> Self {
        Self {
            bytes: found.bytes.saturating_add(LEEWAY.bytes),
            inodes: found.inodes.saturating_add(LEEWAY.inodes),
        }
    }

    fn of(found: Held) -> Self {
        Self {
            bytes: found.bytes,
            inodes: found.inodes,
        }
    }

    fn min(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            inodes: self.inodes.min(other.inodes),
        }
    }

    /// The most that layers may hold that were this large when they first passed this limit.
    fn ceiling(self, found: Held) -> Self {
        let more = |limit: u64, least: u64| (limit / MORE_PART).max(least);
        Self {
            bytes: found.bytes.saturating_add(more(self.bytes, MORE_MIN.bytes)),
            inodes: found
                .inodes
                .saturating_add(more(self.inodes, MORE_MIN.inodes)),
        }
    }

    fn is_passed_by(self, amount: Self) -> bool {
        amount.bytes > self.bytes || amount.inodes > self.inodes
    }
}

/// What a file system still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Free {
    bytes: u64,
    inodes: u64,
}

/// What takes the changes of one sandbox, as it was made for it.
#[derive(Debug)]
pub(super) struct Layers {
    /// What all of them are in.
    directory: PathBuf,
    /// Those of overlays, with a directory for changes and one to work in.
    overlays: Vec<PathBuf>,
    /// How many others are bound to where they are seen.
    bound: usize,
}

impl Layers {
    /// Those of a root and what is in it that are in this directory.
    pub(super) fn of(root: &Root, entries: &[Entry], directory: PathBuf) -> Self {
        let root = match root {
            Root::Overlay(overlay) => Some(overlay),
            Root::Memory => None,
        };
        let mut layers = Self {
            directory,
            overlays: root.and_then(layer_on_disk).cloned().into_iter().collect(),
            bound: 0,
        };
        for entry in entries {
            match &entry.kind {
                EntryKind::Overlay(overlay) => {
                    layers.overlays.extend(layer_on_disk(overlay).cloned());
                }
                EntryKind::Bind { source, .. } if source.starts_with(&layers.directory) => {
                    layers.bound += 1;
                }
                _ => {}
            }
        }
        layers
    }

    /// What they hold when they are new. To walk through them would take longer than to make them.
    fn held_at_first(&self) -> Held {
        /// The layer, what is in it, and what the kernel makes to work in: a directory, and marks in
        /// two more and a file that the layer need not outlive the machine.
        const DIRECTORIES_PER_OVERLAY: usize = 6;
        const FILES_PER_OVERLAY: usize = 1;
        let directories = self.overlays.len() * DIRECTORIES_PER_OVERLAY + self.bound;
        let files = self.overlays.len() * FILES_PER_OVERLAY;
        let one = fs::metadata(&self.directory).map_or(0, |found| found.blocks() * 512);
        Held {
            bytes: one.saturating_mul(directories as u64),
            inodes: (directories + files) as u64,
            unseen: 0,
        }
    }
}

fn layer_on_disk(overlay: &Overlay) -> Option<&PathBuf> {
    match &overlay.layer {
        Some(Layer::Directory(path)) => Some(path),
        Some(Layer::Memory) | None => None,
    }
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
    /// What the last walk found that came to its end, or for which somebody was killed.
    held: Held,
    /// One that did not.
    walk: Option<Walk>,
    /// What layers that are too large may hold, because it was there when somebody was killed for it.
    tolerated: DiskLimit,
    /// What they may hold at all, since they are.
    ceiling: Option<DiskLimit>,
    /// How often somebody was killed since then, and whether that does not help.
    kills: u32,
    killed: Option<Instant>,
    is_helpless: bool,
    /// Somebody was killed, and nobody has looked since then.
    is_settling: bool,
    /// The directories that overlays work in; what they make there is closed to everybody.
    closed: Vec<Identity>,
    free_at_first: Option<Free>,
    free: Option<Free>,
    glances: u32,
    unlinked: Option<Unlinked>,
    activity: Activity,
    next: Instant,
}

/// Whether anything in the sandbox could have written something.
#[derive(Default)]
struct Activity {
    /// Who tells; where nobody does, something always could.
    clock: Option<Clock>,
    /// What it told when a walk that found everything began.
    seen: Option<u64>,
}

/// Tells a number that grows when anything in the sandbox runs, and only then.
type Clock = Box<dyn Fn() -> Option<u64>>;

impl Activity {
    fn now(&self) -> Option<u64> {
        self.clock.as_ref()?()
    }
}

impl std::fmt::Debug for Activity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut activity = formatter.debug_struct("Activity");
        activity.field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl DiskWatch {
    /// Begins to watch layers that are there, and tells of it in `directory`. To be called while
    /// nobody writes to them.
    pub(super) fn begin(directory: &Path, layers: &Layers, limit: DiskLimit) -> io::Result<Self> {
        let counter = File::create_new(directory.join(COUNTER))?;
        // When there is something to tell, the disk may have no room for it.
        counter.write_all_at(b"0", 0)?;
        let closed = layers.overlays.iter();
        let closed = closed.filter_map(|overlay| identify(&overlay.join("work")));
        let closed = closed.collect();
        let free = free(&layers.directory);
        let mut watch = Self {
            base: layers.held_at_first(),
            layers: layers.directory.clone(),
            limit,
            counter,
            exceeded: 0,
            held: Held::default(),
            walk: None,
            tolerated: DiskLimit::NOTHING,
            ceiling: None,
            kills: 0,
            killed: None,
            is_helpless: false,
            is_settling: false,
            closed,
            free_at_first: free,
            free,
            glances: 0,
            unlinked: None,
            activity: Activity::default(),
            next: Instant::now(),
        };
        watch.next += watch.often(watch.base);
        Ok(watch)
    }

    /// What the layers held when they were new.
    pub(super) fn base(&self) -> DiskLimit {
        DiskLimit::of(self.base)
    }

    /// From now on it looks only when this says that something has run.
    pub(super) fn watch_activity(&mut self, clock: impl Fn() -> Option<u64> + 'static) {
        self.activity = Activity {
            clock: Some(Box::new(clock)),
            seen: None,
        };
    }

    /// From now on it counts also the unnamed files of the processes below the first one.
    pub(super) fn watch_processes(&mut self, init: i32, executor: i32) {
        self.unlinked = Some(Unlinked::of(init, executor, &self.layers));
    }

    /// How long until it is time to look.
    pub(super) fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, when it is time to. Says whether the limit is passed and the layers still grow.
    pub(super) fn look(&mut self) -> bool {
        self.look_for(LOOK_MAX)
    }

    fn look_for(&mut self, longest: Duration) -> bool {
        if !self.due_in().is_zero() {
            return false;
        }
        let activity = self.activity.now();
        if self.walk.is_none() && activity.is_some() && activity == self.activity.seen {
            self.next = Instant::now() + self.glance_again();
            return false;
        }
        let before = std::mem::replace(&mut self.free, free(&self.layers));
        let filling = match (self.free, before) {
            (Some(now), Some(before)) => now.bytes < before.bytes || now.inodes < before.inodes,
            _ => true,
        };
        self.glances += 1;
        let may_wait = self.walk.is_none() && !self.is_settling;
        if !filling && may_wait && self.glances < GLANCES_MAX {
            self.next = Instant::now() + self.glance_again();
            return false;
        }
        self.glances = 0;
        let begun = Instant::now();
        let new = || Walk::begin(&self.layers, self.closed.clone());
        // One that goes on may have passed by what has come since it began.
        let is_new = self.walk.is_none();
        let mut walk = self.walk.take().unwrap_or_else(new);
        let progress = walk.proceed(Some(begun + longest));
        let unlinked = self.unlinked.as_mut();
        let unlinked = unlinked.map_or_else(Held::default, |all| all.held(begun + longest));
        let held = walk.held().and(unlinked);
        let grew = self.tolerated.is_passed_by(DiskLimit::of(held));
        let is_exceeded = (grew && self.is_past(self.used(held)))
            || (filling && held.unseen > self.base.unseen && self.is_past(self.lost()));
        let is_settling = std::mem::take(&mut self.is_settling);
        if is_exceeded && !is_settling {
            self.judge(held, progress);
            return true;
        }
        let pause = (begun.elapsed() * REST).max(self.often(held));
        self.next = Instant::now() + pause.min(self.pause_max(held));
        match progress {
            Progress::Finished => {
                self.tolerate(held, is_settling);
                self.held = held;
                self.activity.seen = activity.filter(|_| is_new);
            }
            Progress::Interrupted => self.walk = Some(walk),
        }
        false
    }

    /// Decides whether killing helps, before somebody is killed for what was found.
    fn judge(&mut self, found: Held, progress: Progress) {
        let is_whole = progress == Progress::Finished && found.unseen <= self.base.unseen;
        self.is_helpless = match self.ceiling.filter(|_| is_whole) {
            Some(ceiling) => ceiling.is_passed_by(DiskLimit::of(found)),
            None => self.kills >= KILLS_MAX,
        };
        self.settle(found);
    }

    /// Has somebody look anew as soon as whoever could be writing is killed.
    fn settle(&mut self, found: Held) {
        self.tolerated = DiskLimit::just_above(found);
        self.held = found;
        let now = Instant::now();
        let is_in_row = self
            .killed
            .replace(now)
            .is_some_and(|before| now - before < ROW);
        self.kills = if is_in_row { self.kills + 1 } else { 1 };
        self.is_settling = true;
        self.activity.seen = None;
        self.next = Instant::now();
    }

    /// Whoever removes something cannot put as much in its place.
    fn tolerate(&mut self, found: Held, is_settling: bool) {
        let found_now = DiskLimit::just_above(found);
        let is_past = self.is_past(self.used(found));
        self.tolerated = match is_past {
            true if is_settling => found_now,
            true => self.tolerated.min(found_now),
            false => DiskLimit::NOTHING,
        };
        let ceiling = self.limit.ceiling(found);
        match is_past {
            true => _ = self.ceiling.get_or_insert(ceiling),
            false if found.unseen <= self.base.unseen => (self.ceiling, self.kills) = (None, 0),
            false => {}
        }
    }

    /// What came to the layers since the beginning.
    fn used(&self, held: Held) -> DiskLimit {
        DiskLimit {
            bytes: held.bytes.saturating_sub(self.base.bytes),
            inodes: held.inodes.saturating_sub(self.base.inodes),
        }
    }

    /// What the whole file system has lost since then; nothing if it does not say.
    fn lost(&self) -> DiskLimit {
        let lost = self.free_at_first.zip(self.free);
        let lost = lost.map(|(first, now)| DiskLimit {
            bytes: first.bytes.saturating_sub(now.bytes),
            inodes: first.inodes.saturating_sub(now.inodes),
        });
        lost.unwrap_or(DiskLimit::NOTHING)
    }

    fn is_past(&self, amount: DiskLimit) -> bool {
        self.limit.is_passed_by(amount)
    }

    /// How soon the rest of the limit could be used up when this much was found.
    fn often(&self, held: Held) -> Duration {
        let used = self.used(held);
        let bytes = self.limit.bytes.saturating_sub(used.bytes);
        let inodes = self.limit.inodes.saturating_sub(used.inodes);
        let milliseconds = (bytes / BYTES_PER_MILLISECOND).min(inodes / INODES_PER_MILLISECOND);
        Duration::from_millis(milliseconds).clamp(OFTEN, SELDOM)
    }

    /// How soon a glance at the file system as a whole is worth it when nothing was written: a glance costs
    /// little, and what is written until the next one is past every limit.
    fn glance_again(&self) -> Duration {
        let soon = self.often(self.held) * 2;
        soon.min(SELDOM).min(self.pause_max(self.held))
    }

    /// How long nobody need look when this much was found, now or the last time.
    fn pause_max(&self, held: Held) -> Duration {
        let is_close = [held, self.held].into_iter().any(|held| {
            let used = self.used(held);
            used.bytes > self.limit.bytes / 2 || used.inodes > self.limit.inodes / 2
        });
        if is_close {
            PAUSE_MAX_WHEN_CLOSE
        } else {
            PAUSE_MAX
        }
    }

    /// Whether the layers grow on and on although whoever could be writing is killed.
    pub(super) fn is_helpless(&self) -> bool {
        self.is_helpless
    }

    /// Notes that it came to that. To be called before anybody can notice the consequences.
    pub(super) fn note(&mut self) {
        self.exceeded += 1;
        let mut text = self.exceeded.to_string();
        if self.is_helpless {
            text.push_str(&format!(" {ENDED}"));
        }
        // The number only ever gets longer, so no old digit stays behind the new ones.
        let _ = self.counter.write_all_at(text.as_bytes(), 0);
    }
}

/// Whether the sandbox of this directory was ended because its files grew on and on.
pub(super) fn has_ended(directory: &Path) -> bool {
    fs::read_to_string(directory.join(COUNTER)).is_ok_and(|text| text.ends_with(ENDED))
}

/// What the file system below `path` still has; `None` when it does not say.
fn free(path: &Path) -> Option<Free> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Free {
        bytes: found.f_bfree.saturating_mul(found.f_frsize),
        inodes: found.f_ffree,
    })
}

/// What is below `root`, or as much of it as can be found in some seconds.
pub(super) fn measure(root: &Path) -> Held {
    let mut walk = Walk::begin(root, Vec::new());
    walk.proceed(Some(Instant::now() + MEASURE_MAX));
    walk.held()
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
