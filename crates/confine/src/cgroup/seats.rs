//! The directories that one group, or one leaf of it, has in the hierarchies of the machine.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use rustix::process::Pid;

use super::{
    CgroupError, Controller, FreezeMeans, KillMeans, Version,
    detect::read,
    directory::{Directory, PROCESSES},
    proc_files::{HierarchyName, join, memberships},
};

/// A place in one hierarchy.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) hierarchy: HierarchyName,
    pub(super) version: Version,
    /// What this directory is used for; empty for a tree that only knows its members.
    pub(super) controllers: Vec<Controller>,
    pub(super) directory: Arc<Directory>,
    /// What `/proc/PID/cgroup` calls the directory.
    pub(super) path: String,
    pub(super) holder: Holder,
}

/// Whose directory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Made for this group or leaf, and removed with it.
    Own,
    /// The group's, used by its leaves as well where a directory each would be of no use.
    Group,
}

impl Seat {
    /// Whether leaves need directories of their own in this hierarchy: where something is
    /// counted, capped or stopped leaf by leaf. Time and disk quotas are the group's, and every
    /// directory less makes a start faster.
    pub(super) fn is_per_leaf(&self) -> bool {
        let per_leaf = |controller: &Controller| match controller {
            Controller::Memory
            | Controller::Pids
            | Controller::Freezer
            | Controller::CpuAccounting => true,
            Controller::Cpu | Controller::Io => false,
        };
        self.version == Version::V2 || self.controllers.iter().any(per_leaf)
    }

    /// The same seat, for a leaf of its group that needs no directory of its own here.
    pub(super) fn lent(&self) -> Self {
        Self {
            holder: Holder::Group,
            ..self.clone()
        }
    }

    /// The seat of a leaf of this seat's group.
    pub(super) fn of_leaf(&self, name: &str, directory: Directory) -> Self {
        Self {
            directory: Arc::new(directory),
            path: join(&self.path, name),
            holder: Holder::Own,
            ..self.clone()
        }
    }
}

/// All places of one group or leaf.
#[derive(Debug, Default)]
pub(super) struct Seats(pub(super) Vec<Seat>);

impl Seats {
    pub(super) fn own(&self) -> impl Iterator<Item = &Seat> {
        self.0.iter().filter(|seat| seat.holder == Holder::Own)
    }

    pub(super) fn unified(&self) -> Option<&Seat> {
        self.own().find(|seat| seat.version == Version::V2)
    }

    /// The unified seat when its directory has `file`, which older kernels may not know.
    pub(super) fn unified_with(&self, file: &str) -> Option<&Seat> {
        self.unified().filter(|seat| seat.directory.has(file))
    }

    pub(super) fn with(&self, controller: Controller) -> Option<&Seat> {
        self.own()
            .find(|seat| seat.controllers.contains(&controller))
    }

    pub(super) fn freeze_means(&self) -> FreezeMeans {
        if self.unified_with("cgroup.freeze").is_some() {
            FreezeMeans::Unified
        } else if self.with(Controller::Freezer).is_some() {
            FreezeMeans::Legacy
        } else {
            FreezeMeans::None
        }
    }

    pub(super) fn kill_means(&self) -> KillMeans {
        if self.unified_with("cgroup.kill").is_some() {
            KillMeans::Unified
        } else if self.0.is_empty() {
            KillMeans::None
        } else if self.freeze_means() == FreezeMeans::None {
            KillMeans::Signal
        } else {
            KillMeans::FreezeAndSignal
        }
    }

    /// Every process that is in any of our directories, each once.
    pub(super) fn members(&self) -> Result<BTreeSet<i32>, CgroupError> {
        let mut members = BTreeSet::new();
        for seat in self.own() {
            let failure = seat.directory.failure("list the processes of", "");
            members.extend(seat.directory.all_processes().map_err(failure)?);
        }
        Ok(members)
    }

    /// Puts a process into every seat.
    pub(super) fn attach(&self, pid: Pid) -> Result<(), CgroupError> {
        let number = pid.as_raw_nonzero().to_string();
        for seat in &self.0 {
            let failure = seat.directory.failure("put a process into", "");
            seat.directory.write(PROCESSES, &number).map_err(failure)?;
        }
        self.confirm(pid)
    }

    /// Asks the kernel whether a process is in every seat.
    pub(super) fn confirm(&self, pid: Pid) -> Result<(), CgroupError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let pid = pid.as_raw_nonzero().get();
        let places = memberships(&read(Path::new(&format!("/proc/{pid}/cgroup")))?);
        for seat in &self.0 {
            let place = places
                .iter()
                .find(|place| place.hierarchy == seat.hierarchy);
            let found = place.map_or("", |place| &place.path);
            if found != seat.path {
                let (expected, found) = (seat.path.clone(), found.to_owned());
                return Err(CgroupError::NotMember {
                    pid,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }
}
