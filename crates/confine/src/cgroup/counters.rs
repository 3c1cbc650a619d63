//! How often limits were met, read again and again at little cost: the files stay open.

use std::io;

use super::{
    CgroupError, Controller, Version,
    directory::keyed,
    events::EventsFile,
    group::Group,
    seats::{Seat, Seats},
};

/// How often limits were met since the group was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LimitCounts {
    /// Processes that were killed because there was no memory left.
    pub oom_kills: u64,
    /// Processes and threads that were refused.
    pub pids_refused: u64,
}

/// Reads [`LimitCounts`] of a group and the leaves that it has now.
#[derive(Debug)]
pub struct LimitCounters {
    memory: Option<Counter>,
    pids: Option<Counter>,
}

/// Tells how much processor time a group has used.
#[derive(Debug)]
pub struct UsedTime {
    file: EventsFile,
    version: Version,
}

/// A number that a group's file and those of its leaves hold.
#[derive(Debug)]
struct Counter {
    key: &'static str,
    own: EventsFile,
    leaves: Vec<EventsFile>,
    version: Version,
}

impl Group {
    /// Something to ask how often limits were met. What is not under control here counts as
    /// never met.
    ///
    /// # Errors
    /// When a control file cannot be opened.
    pub fn limit_counters(&self) -> Result<LimitCounters, CgroupError> {
        LimitCounters::open(&self.seats)
    }

    /// Something to ask whether anything in the group has run. Nothing where that is not counted.
    #[must_use]
    pub fn used_time(&self) -> Option<UsedTime> {
        let accounting = || self.seats.with(Controller::CpuAccounting);
        let seat = self.seats.unified().or_else(accounting)?;
        let file = match seat.version {
            Version::V1 => "cpuacct.usage",
            Version::V2 => "cpu.stat",
        };
        Some(UsedTime {
            file: EventsFile::open(&seat.directory, file).ok()?,
            version: seat.version,
        })
    }
}

impl UsedTime {
    /// A number that grows while anything in the group runs, and stays as it is while nothing does.
    #[must_use]
    pub fn read(&self) -> Option<u64> {
        let text = self.file.read().ok()?;
        match self.version {
            Version::V1 => text.trim().parse().ok(),
            Version::V2 => keyed(&text, "usage_usec"),
        }
    }
}

impl LimitCounters {
    fn open(seats: &Seats) -> Result<Self, CgroupError> {
        let memory = seats.with(Controller::Memory).map(|seat| {
            let (file, key) = match seat.version {
                Version::V1 => ("memory.oom_control", "oom_kill"),
                Version::V2 => ("memory.events", "oom_kill"),
            };
            Counter::open(seat, file, key)
        });
        let pids = seats.with(Controller::Pids);
        let pids = pids.map(|seat| Counter::open(seat, "pids.events", "max"));
        Ok(Self {
            memory: memory.transpose()?,
            pids: pids.transpose()?,
        })
    }

    /// The counts now. A group that was removed has none.
    pub fn read(&self) -> LimitCounts {
        let count = |counter: &Option<Counter>| counter.as_ref().map_or(0, Counter::read);
        LimitCounts {
            oom_kills: count(&self.memory),
            pids_refused: count(&self.pids),
        }
    }
}

impl Counter {
    fn open(seat: &Seat, file: &str, key: &'static str) -> Result<Self, CgroupError> {
        let open = || {
            let children = seat.directory.children()?;
            let leaves = children
                .iter()
                .map(|name| EventsFile::open(&seat.directory.child(name)?, file));
            Ok(Self {
                key,
                own: EventsFile::open(&seat.directory, file)?,
                leaves: leaves.collect::<io::Result<_>>()?,
                version: seat.version,
            })
        };
        open().map_err(seat.directory.failure("read the counters of", file))
    }

    fn read(&self) -> u64 {
        let of = |file: &EventsFile| {
            let text = file.read().unwrap_or_default();
            keyed(&text, self.key).unwrap_or(0)
        };
        let leaves = self.leaves.iter().map(of).fold(0, u64::saturating_add);
        match self.version {
            // Counted where it happened.
            Version::V1 => of(&self.own).saturating_add(leaves),
            // Most are counted all the way up; older kernels count refused processes below only.
            Version::V2 => of(&self.own).max(leaves),
        }
    }
}
