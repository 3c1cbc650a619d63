//! How often a container met its limits, as its control groups count it.
//!
//! Read from outside, where the Engine's processes are those of this machine. The Engine itself tells
//! only that memory ran out, and late; it does not tell that a process was refused. Where there is
//! nothing to read, its word is all that there is.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use bollard::models::ContainerInspectResponse;
use zareba_protocol::LimitHit;
use zareba_runtime::limits;

/// A file of counters is shorter.
const FILE_BYTES_MAX: usize = 4096;

/// Counts since a container was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Processes that were killed because memory had run out.
    pub(crate) oom_kills: u64,
    /// Processes and threads that were refused.
    pub(crate) pids_refused: u64,
}

/// Reads the counters of one container.
#[derive(Debug)]
pub(crate) struct LimitCounters {
    memory: Option<Counter>,
    pids: Option<Counter>,
    told: Mutex<Counts>,
}

#[derive(Debug)]
struct Counter {
    file: File,
    key: &'static str,
    limit: Option<u64>,
}

/// The names that a controller's files have in each version of control groups.
struct Names {
    controller: &'static str,
    limit: [&'static str; 2],
    events: [&'static str; 2],
    key: &'static str,
}

const MEMORY: Names = Names {
    controller: "memory",
    limit: ["memory.limit_in_bytes", "memory.max"],
    events: ["memory.oom_control", "memory.events"],
    key: "oom_kill",
};
const PIDS: Names = Names {
    controller: "pids",
    limit: ["pids.max", "pids.max"],
    events: ["pids.events", "pids.events"],
    key: "max",
};

impl LimitCounters {
    /// Those of a container that runs; `None` when its process is not one of this machine, or its
    /// control groups are not to be seen here. What was counted before is not told.
    pub(crate) fn of(container: &ContainerInspectResponse) -> Option<Self> {
        let pid = container.state.as_ref()?.pid.filter(|pid| *pid > 1)?;
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        // Numbers mean something only here: the group that it is in is named like the container.
        if !groups.contains(container.id.as_deref()?) {
            return None;
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::open(&groups, &mounts)
    }

    /// By `/proc/PID/cgroup` of the container and the mounts of this process.
    fn open(groups: &str, mounts: &str) -> Option<Self> {
        let counters = Self {
            memory: Counter::open(&MEMORY, groups, mounts),
            pids: Counter::open(&PIDS, groups, mounts),
            told: Mutex::default(),
        };
        // Half of the truth would look like all of it.
        if counters.memory.is_none() || counters.pids.is_none() {
            return None;
        }
        *counters.told() = counters.read();
        Some(counters)
    }

    /// The counts now; of a container that has ended they are 0.
    pub(crate) fn read(&self) -> Counts {
        let count = |counter: &Option<Counter>| counter.as_ref().map_or(0, Counter::read);
        Counts {
            oom_kills: count(&self.memory),
            pids_refused: count(&self.pids),
        }
    }

    /// The limits that were met since this was last asked, also by what went on in the background.
    pub(crate) fn met(&self) -> Vec<LimitHit> {
        let now = self.read();
        let before = std::mem::replace(&mut *self.told(), now);
        let limit = |counter: &Option<Counter>| counter.as_ref().and_then(|it| it.limit);
        let mut hits = Vec::new();
        let killed = now.oom_kills.saturating_sub(before.oom_kills);
        if killed > 0 {
            hits.push(limits::out_of_memory(limit(&self.memory), killed));
        }
        let refused = now.pids_refused.saturating_sub(before.pids_refused);
        if refused > 0 {
            hits.push(limits::too_many_processes(limit(&self.pids), refused));
        }
        hits
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counter {
    fn open(names: &Names, groups: &str, mounts: &str) -> Option<Self> {
        let (directory, version) = directory_of(names.controller, groups, mounts)?;
        let limit = fs::read_to_string(directory.join(names.limit[version])).ok();
        Some(Self {
            file: File::open(directory.join(names.events[version])).ok()?,
            key: names.key,
            limit: limit.and_then(|text| text.trim().parse().ok()),
        })
    }

    fn read(&self) -> u64 {
        let mut text = [0; FILE_BYTES_MAX];
        let length = self.file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once(' ')?;
            (key == self.key).then(|| value.trim().parse().ok())?
        });
        value.unwrap_or(0)
    }
}

/// Where a controller has a process's group, and by which version of control groups: 0 is the first.
fn directory_of(controller: &str, groups: &str, mounts: &str) -> Option<(PathBuf, usize)> {
    let mut places = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, Path::new(fields.next()?)))
    });
    let is_it = |(names, _): &(&str, &Path)| names.split(',').any(|name| name == controller);
    let (path, kind, version) = match places.clone().find(is_it) {
        Some((_, path)) => (path, "cgroup", 0),
        None => (places.find(|(names, _)| names.is_empty())?.1, "cgroup2", 1),
    };
    let mut mounted = mounts.lines().filter_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let found = system.next()?;
        let mut options = system.nth(1)?.split(',');
        let is_it = found == kind && (version == 1 || options.any(|name| name == controller));
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root).ok()?;
        is_it.then(|| Path::new(point).join(below))
    });
    Some((mounted.next()?, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        34 31 0:31 / /sys/fs/cgroup/pids rw,relatime shared:3 - cgroup cgroup rw,pids\n\
        35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const UNIFIED: &str = "35 31 0:32 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

    fn found(controller: &str, groups: &str, mounts: &str) -> Option<(String, usize)> {
        let (directory, version) = directory_of(controller, groups, mounts)?;
        Some((directory.display().to_string(), version))
    }

    #[test]
    fn groups_are_found_in_both_versions() {
        let groups = "4:memory:/docker/x\n3:cpu,pids:/docker/x\n0::/docker/x\n";
        let memory = found("memory", groups, HYBRID);
        assert_eq!(
            memory,
            Some(("/sys/fs/cgroup/memory/docker/x".to_owned(), 0))
        );
        let pids = found("pids", groups, HYBRID);
        assert_eq!(pids, Some(("/sys/fs/cgroup/pids/docker/x".to_owned(), 0)));
        let unified = found("pids", "0::/system.slice/docker-x.scope\n", UNIFIED);
        let path = "/sys/fs/cgroup/system.slice/docker-x.scope".to_owned();
        assert_eq!(unified, Some((path, 1)));
        // Where only a part of the tree is mounted, and in another part.
        let part = UNIFIED.replace("0:32 / ", "0:32 /system.slice ");
        let unified = found("pids", "0::/system.slice/x\n", &part);
        assert_eq!(unified, Some(("/sys/fs/cgroup/x".to_owned(), 1)));
        assert_eq!(found("pids", "0::/other/x\n", &part), None);
        assert_eq!(found("memory", groups, UNIFIED), None);
    }

    fn counters(version: usize) -> (tempfile::TempDir, LimitCounters) {
        let place = tempfile::tempdir().unwrap();
        for names in [MEMORY, PIDS] {
            fs::write(
                place.path().join(names.events[version]),
                "oom 9\nmax 1\noom_kill 2\n",
            )
            .unwrap();
            fs::write(place.path().join(names.limit[version]), "1048576\n").unwrap();
        }
        let point = place.path().display();
        let (groups, kind) = match version {
            0 => ("2:memory,pids:/\n", "cgroup cgroup rw,memory,pids"),
            _ => ("0::/\n", "cgroup2 cgroup2 rw"),
        };
        let mounts = format!("1 1 0:1 / {point} rw - {kind}\n");
        let counters = LimitCounters::open(groups, &mounts).unwrap();
        (place, counters)
    }

    #[test]
    fn what_is_counted_after_the_start_is_told_once_in_both_versions_ns_13_ns_17() {
        for version in [0, 1] {
            let (place, counters) = counters(version);
            assert_eq!(counters.met(), []);
            fs::write(
                place.path().join(MEMORY.events[version]),
                "oom 9\noom_kill 4\n",
            )
            .unwrap();
            let told: Vec<String> = counters.met().into_iter().map(|it| it.message).collect();
            let memory =
                "the sandbox reached its memory limit of 1 MiB and 2 processes were killed";
            assert_eq!(told, [memory]);
            fs::write(place.path().join("pids.events"), "max 4\n").unwrap();
            let told: Vec<String> = counters.met().into_iter().map(|it| it.message).collect();
            let pids =
                "the sandbox reached its limit of 1048576 processes and threads: 3 more refused";
            assert_eq!(told, [pids]);
            assert_eq!(counters.met(), []);
        }
    }
}
