//! A leaf: the part of a group that processes are in.
//!
//! The helper that runs inside the sandbox and what it starts are put into leaves of their own.
//! Both count against the group; a leaf with a lower limit than the group runs out first, so
//! that the helper is there to say what happened.

use std::{
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use rustix::{fs::OFlags, process::Pid};

use super::{
    CgroupError, Controller, Demand, Group, Limit, Limits, OomWatch, Outcome, Reason, Report,
    Statistics, Version, check_name,
    directory::PROCESSES,
    freeze,
    group::{apply_in, hold_to},
    kill,
    limits::{check_memory, check_pids},
    remove::{Home, remove_seats},
    seats::{Seat, Seats},
    statistics, v2,
};

/// How long the directories of a leaf that could not be made are tried to be removed.
const UNDO_WITHIN: Duration = Duration::from_millis(500);

/// Who dies when memory runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomScope {
    /// The process that the kernel picks. Always so for our own helper.
    OneProcess,
    /// All processes of the leaf, so that none goes on half alive. Second generation only.
    WholeLeaf,
}

/// What a leaf may use of what its group may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafLimits {
    /// Memory in bytes; a workload gets less than its group, and the difference is the helper's.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Who dies when memory runs out.
    pub oom: OomScope,
}

/// A file that takes processes into a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFile {
    /// The generation; a process cloned into the leaf is in that of [`Version::V2`] already.
    pub version: Version,
    /// The file, which takes `0` for whoever writes it.
    pub path: PathBuf,
}

/// One part of a group, with processes in it. Dropping the value changes nothing.
#[derive(Debug)]
pub struct Leaf {
    name: String,
    pub(super) seats: Seats,
    report: Report,
    oom: Outcome,
}

impl Group {
    /// Makes a leaf.
    ///
    /// # Errors
    /// When the name or a limit is senseless, the leaf exists, the kernel refuses a directory,
    /// or a limit is missing in a group whose policy demands limits.
    pub fn leaf(&self, name: &str, limits: &LeafLimits) -> Result<Leaf, CgroupError> {
        check_memory(limits.memory_bytes)?;
        check_pids(limits.pids)?;
        self.make_leaf(name, limits)
    }

    fn make_leaf(&self, name: &str, limits: &LeafLimits) -> Result<Leaf, CgroupError> {
        check_name(name)?;
        let mut seats = Seats::default();
        let result = self
            .seat_leaf(name, &mut seats)
            .and_then(|()| hold_to(self.demand, report_of(&seats, limits)));
        match result {
            Ok(report) => {
                let oom = set_oom_scope(&seats, limits.oom);
                Ok(Leaf {
                    name: name.to_owned(),
                    seats,
                    report,
                    oom,
                })
            }
            Err(error) => {
                let _ = remove_seats(&seats, UNDO_WITHIN, Home::Keep);
                Err(error)
            }
        }
    }

    fn seat_leaf(&self, name: &str, seats: &mut Seats) -> Result<(), CgroupError> {
        for seat in &self.seats.0 {
            let taken = if seat.is_per_leaf() {
                take_leaf_seat(seat, name)?
            } else {
                seat.lent()
            };
            seats.0.push(taken);
        }
        Ok(())
    }

    /// The leaf of that name that another process, or this one earlier, made; `None` when no
    /// hierarchy has it.
    ///
    /// # Errors
    /// When the name is senseless or a directory cannot be opened.
    pub fn open_leaf(&self, name: &str) -> Result<Option<Leaf>, CgroupError> {
        check_name(name)?;
        let mut seats = Seats::default();
        for seat in &self.seats.0 {
            if !seat.is_per_leaf() {
                seats.0.push(seat.lent());
                continue;
            }
            match seat.directory.child(name) {
                Ok(directory) => seats.0.push(seat.of_leaf(name, directory)),
                Err(error) if super::directory::is_gone(&error) => {}
                Err(error) => return Err(seat.directory.failure("open", name)(error)),
            }
        }
        if seats.own().next().is_none() {
            return Ok(None);
        }
        let report = super::reopen::current(&seats);
        let oom = Outcome::NotRequested;
        Ok(Some(Leaf {
            name: name.to_owned(),
            seats,
            report,
            oom,
        }))
    }
}

/// Makes the directory of a leaf in one hierarchy.
pub(super) fn take_leaf_seat(seat: &Seat, name: &str) -> Result<Seat, CgroupError> {
    let directory = seat.directory.create_child(name).map_err(|source| {
        let path = seat.directory.path().join(name);
        if source.kind() == std::io::ErrorKind::AlreadyExists {
            CgroupError::Exists { path }
        } else {
            CgroupError::Io {
                deed: "make control group",
                path,
                source,
            }
        }
    })?;
    let mut taken = seat.of_leaf(name, directory);
    if taken.version == Version::V2 {
        taken.controllers = v2::controllers_of(&taken.directory);
    }
    Ok(taken)
}

impl Leaf {
    /// A leaf without limits of its own, in directories that are there.
    pub(super) fn unlimited(name: &str, seats: Seats) -> Self {
        let limits = LeafLimits {
            memory_bytes: None,
            pids: None,
            oom: OomScope::OneProcess,
        };
        Self {
            name: name.to_owned(),
            report: report_of(&seats, &limits),
            oom: set_oom_scope(&seats, limits.oom),
            seats,
        }
    }

    /// The name it was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel enforces for this leaf beyond what it enforces for the group.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What came of the wish that all die together.
    #[must_use]
    pub fn oom_scope(&self) -> &Outcome {
        &self.oom
    }

    /// Puts a process with all its threads into the leaf, in every hierarchy, and asks the
    /// kernel whether it is there. For a child that is not reaped yet or is held by a pidfd,
    /// since a number alone may mean another process by now.
    ///
    /// # Errors
    /// When the kernel refuses; the process may be in some of the hierarchies then, and should
    /// be ended.
    pub fn attach(&self, pid: Pid) -> Result<(), CgroupError> {
        self.seats.attach(pid)
    }

    /// Asks the kernel whether a process is in the leaf, in every hierarchy.
    ///
    /// # Errors
    /// [`CgroupError::NotMember`] when it is not.
    pub fn confirm(&self, pid: Pid) -> Result<(), CgroupError> {
        self.seats.confirm(pid)
    }

    /// The directory of the second generation, for `CLONE_INTO_CGROUP`.
    #[must_use]
    pub fn directory_fd(&self) -> Option<BorrowedFd<'_>> {
        self.seats.unified().map(|seat| seat.directory.as_fd())
    }

    /// The files that a new process writes `0` to before it runs anything.
    #[must_use]
    pub fn member_files(&self) -> Vec<MemberFile> {
        let file = |seat: &Seat| MemberFile {
            version: seat.version,
            path: seat.directory.path().join(PROCESSES),
        };
        self.seats.0.iter().map(file).collect()
    }

    /// The same files, opened: the kernel asks for the rights of whoever opened them, so a child
    /// can use them after it has given up its own and when it can no longer see their paths.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open_member_files(&self) -> Result<Vec<(Version, OwnedFd)>, CgroupError> {
        let open = |seat: &Seat| {
            let failure = seat.directory.failure("open", PROCESSES);
            let file = seat.directory.open_file(PROCESSES, OFlags::WRONLY);
            Ok((seat.version, file.map_err(failure)?))
        };
        self.seats.0.iter().map(open).collect()
    }

    /// Stops the leaf's processes; see [`Group::freeze`].
    ///
    /// # Errors
    /// As for the group.
    pub fn freeze(&self, within: Duration) -> Result<(), CgroupError> {
        freeze::freeze(&self.seats, within)
    }

    /// Lets them go on, unless the group is frozen as well.
    ///
    /// # Errors
    /// As for the group.
    pub fn thaw(&self, within: Duration) -> Result<(), CgroupError> {
        freeze::thaw(&self.seats, within)
    }

    /// Kills the leaf's processes; see [`Group::kill`]. Where the first generation has to do it
    /// and the whole group is frozen, they die only when the group is thawed.
    ///
    /// # Errors
    /// As for the group.
    pub fn kill(&self, within: Duration) -> Result<(), CgroupError> {
        kill::kill(&self.seats, within)
    }

    /// What the leaf's processes have used.
    ///
    /// # Errors
    /// When a control file cannot be read.
    pub fn statistics(&self) -> Result<Statistics, CgroupError> {
        statistics::of(&self.seats)
    }

    /// Something to wait on until memory runs out in the leaf, or in the group with the leaf.
    ///
    /// # Errors
    /// When memory is not under control here.
    pub fn watch_oom(&self) -> Result<OomWatch, CgroupError> {
        OomWatch::new(&self.seats)
    }

    /// Removes the leaf alone, as after an action that had one of its own.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] when it is still in use when the time is up.
    pub fn remove(&self, within: Duration) -> Result<(), CgroupError> {
        remove_seats(&self.seats, within, Home::Keep)
    }
}

/// Sets the limits of a new leaf. Swap is the group's: its leaves cannot have more.
fn report_of(seats: &Seats, limits: &LeafLimits) -> Report {
    let asked = Limits {
        memory_bytes: limits.memory_bytes,
        pids: limits.pids,
        cpu_millis: None,
        io: Vec::new(),
        demand: Demand::BestEffort,
    };
    let outcome = |limit: Limit| match seats.with(limit.controller()) {
        _ if !asked.ask_for(limit) => Outcome::NotRequested,
        Some(seat) => apply_in(seat, limit, &asked),
        // Why the group has no such controller stands in the group's report.
        None => Outcome::NotEnforced(Reason::Absent),
    };
    Report {
        limits: vec![
            (Limit::Memory, outcome(Limit::Memory)),
            (Limit::Pids, outcome(Limit::Pids)),
        ],
        freeze: seats.freeze_means(),
        kill: seats.kill_means(),
    }
}

fn set_oom_scope(seats: &Seats, scope: OomScope) -> Outcome {
    let unified = seats
        .with(Controller::Memory)
        .filter(|seat| seat.version == Version::V2);
    match (unified, scope) {
        (Some(seat), OomScope::WholeLeaf) => v2::set_oom_group(&seat.directory, "1"),
        (Some(seat), OomScope::OneProcess) => v2::set_oom_group(&seat.directory, "0"),
        (None, OomScope::WholeLeaf) => Outcome::NotEnforced(Reason::Unsupported {
            file: "memory.oom.group",
        }),
        // The first generation knows nothing else.
        (None, OomScope::OneProcess) => Outcome::NotRequested,
    }
}
