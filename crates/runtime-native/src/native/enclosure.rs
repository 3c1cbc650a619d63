//! What can be done to a running sandbox from outside, by whoever may enter its directory.

use std::{
    fs::{self, File},
    io,
    net::TcpStream,
    os::{fd::AsFd as _, unix::fs::FileExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    },
};
use serde_json::{Value, json};
use zareba_confine::cgroup::{
    CgroupError, FreezeMeans, Group, Limit, LimitCounters, LimitCounts, Outcome, Statistics,
};
use zareba_protocol::{LimitHit, LimitKind};
use zareba_runtime::{Activity, limits};
use zareba_terminal::{Process, continue_descendants, descendants, stop_descendants};

use super::{
    described::Description,
    disk::{self, Held},
    doorman::{self, VisitError},
    groups, memory, proxy,
    room::Room,
};
use crate::changes::Layers;

/// How long processes may take to stand still, or to go on.
const STANDSTILL: Duration = Duration::from_secs(5);

/// The mark of a paused sandbox.
const PAUSED: &str = "paused";

/// Clock ticks in the second that `/proc` counts in, on every machine that Linux runs on today.
const TICKS_PER_SECOND: u64 = 100;

/// A shell reports a process that was ended by SIGXFSZ with this status.
const FILE_TOO_LARGE: i64 = 128 + 25;

/// A running sandbox, seen from outside.
#[derive(Debug)]
pub(crate) struct Enclosure {
    directory: PathBuf,
    opened: OnceLock<Option<Opened>>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Opened {
    description: Description,
    group: Option<Group>,
    counters: Option<LimitCounters>,
    disk: Option<File>,
    memory: Option<File>,
    room: Arc<Room>,
}

/// How often limits had been met when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    counts: LimitCounts,
    disk: u64,
    memory: u64,
}

/// Why a sandbox could not be paused, resumed or looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PauseError {
    /// Its changes are in the directory itself, or an older version has started it.
    #[error(
        "the workspace of this sandbox is not kept apart from its directory, so its changes cannot \
         be told; they are in the directory itself"
    )]
    NotKeptApart,
    /// A directory of the workspace cannot be opened.
    #[error("cannot open the workspace")]
    Workspace(#[source] io::Error),
    /// There is no description of it.
    #[error("the sandbox has ended")]
    Ended,
    /// Its processes do not stand still, or do not go on.
    #[error("its processes do not obey")]
    Group(#[from] CgroupError),
    /// The mark could not be written.
    #[error("cannot note that it is paused")]
    Mark(#[from] io::Error),
}

/// A sandbox was ended because killing what ran did not keep it at a limit.
#[derive(Debug, thiserror::Error)]
#[error(
    "its files went on growing past their limit{size} or {files} files although what ran was killed, so it was \
     ended; make one with a larger limit (`native.disk`, `native.inodes`)"
)]
pub(crate) struct EndedForLimit {
    size: String,
    files: u64,
}

impl Enclosure {
    /// That of a sandbox with this directory, when the runtime is one with walls.
    pub(crate) fn of(runtime: &str, directory: &Path) -> Option<Arc<Self>> {
        (runtime == super::NAME).then(|| Arc::new(Self::new(directory)))
    }

    /// The same of one that has run before: what it had met until now was told, or lost with whoever it
    /// would have been told to. It is not told again.
    pub(crate) fn found(runtime: &str, directory: &Path) -> Option<Arc<Self>> {
        let enclosure = Self::of(runtime, directory)?;
        if let Some(opened) = enclosure.opened() {
            let mut seen = enclosure
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *seen = opened.seen();
        }
        Some(enclosure)
    }

    fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            opened: OnceLock::new(),
            seen: Mutex::default(),
        }
    }

    /// Finds its control groups and opens what is read again and again. Blocks for a moment, the
    /// first time.
    pub(crate) fn open(&self) -> bool {
        self.opened().is_some()
    }

    fn opened(&self) -> Option<&Opened> {
        let open = || Opened::open(&self.directory);
        self.opened.get_or_init(open).as_ref()
    }

    /// What clients may still put into it; `None` once it has ended.
    pub(crate) fn room(&self) -> Option<Arc<Room>> {
        self.opened().map(|opened| Arc::clone(&opened.room))
    }

    pub(crate) fn is_paused(&self) -> bool {
        fs::symlink_metadata(self.directory.join(PAUSED)).is_ok()
    }

    /// Stops every process where it is. Blocks.
    pub(crate) fn pause(&self) -> Result<(), PauseError> {
        let opened = self.opened().ok_or(PauseError::Ended)?;
        let mark = self.directory.join(PAUSED);
        // The mark first: whoever finds none can count on an answer.
        File::create(&mark)?;
        let paused = match opened.freezable() {
            Some(group) => group.freeze(STANDSTILL),
            None => {
                stop_descendants(opened.init()?);
                Ok(())
            }
        };
        if let Err(error) = paused {
            let _ = self.resume();
            return Err(error.into());
        }
        Ok(())
    }

    /// Lets them go on. Blocks.
    pub(crate) fn resume(&self) -> Result<(), PauseError> {
        let opened = self.opened().ok_or(PauseError::Ended)?;
        match opened.freezable() {
            Some(group) => group.thaw(STANDSTILL)?,
            None => continue_descendants(opened.init()?),
        }
        match fs::remove_file(self.directory.join(PAUSED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The limits that were met since the last time somebody asked, also by what went on in the
    /// background meanwhile.
    pub(crate) fn limits_met(&self, exit_code: i64) -> Vec<LimitHit> {
        let Some(opened) = self.opened() else {
            return Vec::new();
        };
        let now = opened.seen();
        let before = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *seen, now)
        };
        opened.tell(before, now, exit_code)
    }

    /// Why it has ended, where the reason is one of its limits.
    pub(crate) fn end_reason(&self) -> Option<EndedForLimit> {
        ended_for_limit(&self.directory)
    }

    /// What goes on inside: processor time by the control group where there is one, else that of
    /// the processes that are there.
    pub(crate) fn activity(&self) -> Result<Activity, PauseError> {
        let opened = self.opened().ok_or(PauseError::Ended)?;
        let inside = descendants(opened.init()?);
        let statistics = opened.group.as_ref().map(Group::statistics);
        let counted = statistics.and_then(Result::ok).and_then(|all| all.cpu);
        let processor = counted.map_or_else(
            || {
                let ticks: u64 = inside.iter().map(|process| process.ticks).sum();
                Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND))
            },
            |cpu| cpu.usage,
        );
        Ok(Activity {
            processor,
            has_command: inside.iter().any(Process::waits_for_command),
        })
    }

    /// What stands around it, and what it has used.
    pub(crate) fn inspect(&self) -> Option<Value> {
        let opened = self.opened()?;
        let held = disk::measure(&self.directory.join("layer"));
        let statistics = opened.group.as_ref().map(Group::statistics);
        let usage = statistics.and_then(Result::ok).unwrap_or_default();
        let listening = doorman::listening_inside(&self.directory).unwrap_or_default();
        let egress = fs::read(self.directory.join(proxy::COUNTERS)).unwrap_or_default();
        Some(json!({
            "paused": self.is_paused(),
            "pid": opened.description.init.pid,
            "home_tools": opened.description.home_tools,
            "enforcement": opened.description.enforcement,
            "usage": usage_document(&usage, held),
            "listening": listening,
            "egress": serde_json::from_slice::<Value>(&egress).ok(),
        }))
    }

    /// The changes of its workspace. Reading them blocks.
    pub(crate) fn layers(&self) -> Result<Layers, PauseError> {
        let opened = self.opened().ok_or(PauseError::Ended)?;
        let place = opened.description.changes.as_ref();
        let place = place.ok_or(PauseError::NotKeptApart)?;
        let layers = Layers::open(place, &self.directory).map_err(PauseError::Workspace)?;
        layers.ok_or(PauseError::NotKeptApart)
    }

    /// Connects to a program inside. Blocks for some seconds at most.
    pub(crate) fn connect(&self, port: u16) -> Result<TcpStream, VisitError> {
        doorman::connect_inside(&self.directory, port)
    }
}

/// The reason of a sandbox's end, as its supervisor left it in the directory.
pub(crate) fn ended_for_limit(directory: &Path) -> Option<EndedForLimit> {
    if !disk::has_ended(directory) {
        return None;
    }
    let disk = Description::read(directory)?.disk;
    Some(EndedForLimit {
        size: limits::bytes(disk.bytes),
        files: disk.inodes,
    })
}

/// Ends the sandbox of a directory whose record is missing: by its first process, with which
/// everything inside goes.
pub(crate) fn end_unrecorded(directory: &Path) {
    let Some(init) = Description::read(directory).map(|description| description.init) else {
        return;
    };
    let Some(pid) = Pid::from_raw(init.pid) else {
        return;
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    // The descriptor first: what is checked then is what is held.
    if Process::read(init.pid).is_ok_and(|process| process.id == init) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        let within = Timespec::try_from(STANDSTILL).ok();
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], within.as_ref());
    }
}

/// Reaps the first process of a sandbox whose supervisor was killed. The kernel kills it then, and makes
/// it the child of the nearest reaper of orphans, which we may be: a server is one, and in a container it
/// may be process 1. Another's child is left alone. Blocks until the process has ended.
pub(crate) fn reap_orphan(directory: &Path) {
    let Some(init) = Description::read(directory).map(|description| description.init) else {
        return;
    };
    let Some(Ok(handle)) = Pid::from_raw(init.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()))
    else {
        return;
    };
    if Process::read(init.pid).is_ok_and(|process| process.id == init) {
        let within = Timespec::try_from(STANDSTILL).ok();
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], within.as_ref());
        let ended = WaitId::PidFd(handle.as_fd());
        let _ = waitid(ended, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

impl Opened {
    fn open(directory: &Path) -> Option<Self> {
        let description = Description::read(directory)?;
        let group = groups::this_machine()
            .and_then(|host| Group::open_at(host, &description.groups))
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot find the control groups of a sandbox");
                None
            });
        let counters = group.as_ref().map(Group::limit_counters);
        let (limit, base) = (description.disk, description.disk_base);
        Some(Self {
            description,
            counters: counters.and_then(Result::ok),
            group,
            disk: File::open(directory.join(disk::COUNTER)).ok(),
            memory: File::open(directory.join(memory::COUNTER)).ok(),
            room: Arc::new(Room::new(directory.join("layer"), limit, base)),
        })
    }

    fn freezable(&self) -> Option<&Group> {
        let group = self.group.as_ref()?;
        (group.report().freeze != FreezeMeans::None).then_some(group)
    }

    /// The number of the first process, unless another has got it.
    fn init(&self) -> Result<i32, PauseError> {
        let init = self.description.init;
        match Process::read(init.pid) {
            Ok(process) if process.id == init => Ok(init.pid),
            _ => Err(PauseError::Ended),
        }
    }

    fn seen(&self) -> Seen {
        Seen {
            counts: self
                .counters
                .as_ref()
                .map_or_else(LimitCounts::default, LimitCounters::read),
            disk: self.disk.as_ref().map_or(0, read_number),
            memory: self.memory.as_ref().map_or(0, read_number),
        }
    }

    fn tell(&self, before: Seen, now: Seen, exit_code: i64) -> Vec<LimitHit> {
        let mut hits = Vec::new();
        // One of them is always 0: the kernel's kills, and the supervisor's where no group holds memory.
        let by_kernel = now.counts.oom_kills.saturating_sub(before.counts.oom_kills);
        let killed = by_kernel + now.memory.saturating_sub(before.memory);
        if killed > 0 {
            let limit = self.limit(Limit::Memory).or(self.description.memory_bytes);
            hits.push(limits::out_of_memory(limit, killed));
        }
        let counted = (now.counts.pids_refused, before.counts.pids_refused);
        let refused = counted.0.saturating_sub(counted.1);
        if refused > 0 {
            hits.push(limits::too_many_processes(self.limit(Limit::Pids), refused));
        }
        let mut hit = |message| {
            let kind = LimitKind::DiskQuotaExceeded;
            hits.push(LimitHit { kind, message });
        };
        let disk = self.description.disk;
        if now.disk > before.disk {
            let (size, files) = (limits::bytes(disk.bytes), disk.inodes);
            hit(format!(
                "the sandbox's files outgrew their limit{size} or {files} files, and what ran was killed; remove some"
            ));
        } else if exit_code == FILE_TOO_LARGE {
            let size = limits::bytes(disk.bytes);
            hit(format!(
                "a file would have outgrown the limit{size} for files"
            ));
        }
        hits
    }

    /// The number that the kernel enforces.
    fn limit(&self, limit: Limit) -> Option<u64> {
        match self.group.as_ref()?.report().outcome(limit) {
            Outcome::Enforced { value, .. } => value.parse().ok(),
            _ => None,
        }
    }
}

fn read_number(file: &File) -> u64 {
    let mut digits = [0; 32];
    let length = file.read_at(&mut digits, 0).unwrap_or(0);
    let digits = digits.get(..length).unwrap_or_default();
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

fn usage_document(usage: &Statistics, held: Held) -> Value {
    let memory = usage.memory.map(|memory| {
        json!({
            "bytes": memory.current_bytes,
            "peak_bytes": memory.peak_bytes,
            "oom_kills": memory.oom_kills,
        })
    });
    let pids = usage
        .pids
        .map(|pids| json!({ "current": pids.current, "refused": pids.limit_hits }));
    let cpu = usage
        .cpu
        .as_ref()
        .map(|cpu| json!({ "seconds": cpu.usage.as_secs_f64() }));
    json!({
        "memory": memory,
        "pids": pids,
        "cpu": cpu,
        "disk": { "bytes": held.bytes, "inodes": held.inodes },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_a_description_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let enclosure = Enclosure::new(directory.path());
        assert!(!enclosure.open());
        assert!(matches!(enclosure.pause(), Err(PauseError::Ended)));
        assert!(!enclosure.is_paused());
        assert_eq!(enclosure.limits_met(1), []);
    }
}
