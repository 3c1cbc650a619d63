//! One hierarchy as this process finds it: what it controls, where our place in it is, and
//! whether groups can be made there.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access as Permission, AtFlags, CWD},
    io::Errno,
};

use super::{
    HOME, OWN_LEAF, Reason,
    directory::PROCESSES,
    proc_files::{CgroupMount, HierarchyName, Membership},
    v2,
};

/// A resource that a hierarchy can hold in check or account for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// Memory and swap.
    Memory,
    /// The number of processes and threads.
    Pids,
    /// Time on the processors.
    Cpu,
    /// Block devices; `blkio` in the first generation.
    Io,
    /// Stopping all processes; in the second generation part of every group.
    Freezer,
    /// Time used; in the second generation part of every group.
    CpuAccounting,
}

impl Controller {
    /// Those that a sandbox's limits need.
    pub(super) const LIMITING: [Self; 4] = [Self::Memory, Self::Pids, Self::Cpu, Self::Io];

    const ALL: [Self; 6] = [
        Self::Memory,
        Self::Pids,
        Self::Cpu,
        Self::Io,
        Self::Freezer,
        Self::CpuAccounting,
    ];

    /// What the kernel calls it in that generation.
    #[must_use]
    pub fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Memory, _) => "memory",
            (Self::Pids, _) => "pids",
            (Self::Cpu, _) => "cpu",
            (Self::Io, Version::V1) => "blkio",
            (Self::Io, Version::V2) => "io",
            (Self::Freezer, _) => "freezer",
            (Self::CpuAccounting, _) => "cpuacct",
        }
    }

    /// Those among `names` that are of use to us.
    pub(super) fn among<'a>(
        version: Version,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<Self> {
        let is_named = |controller: &Self| {
            let name = controller.name(version);
            names.clone().any(|candidate| candidate == name)
        };
        Self::ALL.into_iter().filter(is_named).collect()
    }
}

/// The generation of a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// One hierarchy per controller or set of them.
    V1,
    /// One hierarchy for all; on a hybrid machine it has few controllers or none.
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V1 => "cgroup v1",
            Self::V2 => "cgroup v2",
        })
    }
}

/// Whether this user can make groups in a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Directories can be made and processes put into them.
    Writable,
    /// The mount is read-only, as in most containers.
    ReadOnly,
    /// The directory belongs to somebody else: nothing was delegated to this user.
    NotPermitted,
    /// No mount shows our place in this hierarchy.
    NotVisible,
}

/// Whether controllers can be handed down to groups inside a place: the kernel refuses it while
/// processes are in the place itself, except at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vacancy {
    /// The root, or a place without processes.
    Free,
    /// Only this process is there and the place is ours, so that it can step into a leaf.
    OnlyThisProcess,
    /// Processes of others are there; they are not disturbed.
    Occupied,
}

/// One hierarchy and our place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The generation.
    pub version: Version,
    /// The controllers that groups of ours get here.
    pub controllers: Vec<Controller>,
    /// Where `zareba/` is or will be; empty when [`Access::NotVisible`].
    pub directory: PathBuf,
    /// Whether this user can make groups there.
    pub access: Access,
    /// Controllers that would be here, and why groups of ours do not get them.
    pub withheld: Vec<(Controller, Reason)>,
    pub(super) name: HierarchyName,
    /// What `/proc/PID/cgroup` calls `directory`.
    pub(super) path: String,
    pub(super) mount: Option<CgroupMount>,
    pub(super) vacancy: Vacancy,
}

impl Hierarchy {
    /// Puts together what the two files of `/proc` say, and looks at the place itself.
    pub(super) fn of(membership: &Membership, mounts: &[CgroupMount]) -> Self {
        let path = own_place(&membership.path);
        // Of several mounts the last wins, since it may lie over the earlier; writable ones first.
        let shown = mounts
            .iter()
            .filter(|mount| mount.shows(&membership.hierarchy))
            .filter_map(|mount| Some((mount, mount.directory_of(path)?)));
        let found = shown.max_by_key(|(mount, _)| mount.is_writable);
        let (version, names) = match &membership.hierarchy {
            HierarchyName::Unified => (Version::V2, Vec::new()),
            HierarchyName::Legacy(names) => (Version::V1, names.clone()),
        };
        let mut hierarchy = Self {
            version,
            controllers: Controller::among(version, names.iter().map(String::as_str)),
            directory: PathBuf::new(),
            access: Access::NotVisible,
            withheld: Vec::new(),
            name: membership.hierarchy.clone(),
            path: path.to_owned(),
            mount: None,
            vacancy: Vacancy::Free,
        };
        if let Some((mount, directory)) = found {
            hierarchy.access = access_to(mount, &directory, version);
            hierarchy.directory = directory;
            hierarchy.mount = Some(mount.clone());
            if version == Version::V2 {
                v2::choose_home(&mut hierarchy);
            }
        }
        hierarchy
    }

    /// Why groups here would not have `controller`.
    pub(super) fn reason_against(&self, controller: Controller) -> Option<Reason> {
        match self.access {
            Access::NotVisible => Some(Reason::NotVisible),
            Access::ReadOnly => Some(Reason::ReadOnly),
            Access::NotPermitted => Some(Reason::NotPermitted),
            Access::Writable => {
                let withheld = self
                    .withheld
                    .iter()
                    .find(|(withheld, _)| *withheld == controller);
                withheld.map(|(_, reason)| reason.clone())
            }
        }
    }
}

/// The place that groups go below: the one this process started in, also after it stepped aside
/// into its own leaf.
fn own_place(path: &str) -> &str {
    let stepped_aside = path.strip_suffix(OWN_LEAF).and_then(|path| {
        path.strip_suffix('/')?
            .strip_suffix(HOME)?
            .strip_suffix('/')
    });
    match stepped_aside {
        Some("") => "/",
        Some(place) => place,
        None => path,
    }
}

/// Whether this user may make groups in `directory`, with the rights of the calling thread.
pub(super) fn access_to(mount: &CgroupMount, directory: &Path, version: Version) -> Access {
    let may_write = |path: &Path, wanted| rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS);
    let mut result = may_write(directory, Permission::WRITE_OK | Permission::EXEC_OK);
    if result.is_ok() && version == Version::V2 {
        // Moving a process asks for this right where the two places meet.
        result = may_write(&directory.join(PROCESSES), Permission::WRITE_OK);
    }
    match result {
        _ if !mount.is_writable => Access::ReadOnly,
        Ok(()) => Access::Writable,
        Err(Errno::ROFS) => Access::ReadOnly,
        Err(Errno::NOENT | Errno::NOTDIR) => Access::NotVisible,
        Err(_) => Access::NotPermitted,
    }
}
