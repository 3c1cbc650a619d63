//! The control groups of this machine, as they are offered to this process.

use std::{fs::File, io::Read as _, path::Path};

use super::{
    Access, CgroupError, Controller, Hierarchy, Reason, Version,
    proc_files::{cgroup_mounts, memberships},
};

/// How the two generations share the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only the second generation.
    Unified,
    /// Controllers of the first generation, and a tree of the second beside them.
    Hybrid,
    /// Only the first generation.
    Legacy,
    /// No control groups that can be seen.
    None,
}

/// Every hierarchy this process is in. Made once and kept: it changes only when somebody mounts
/// or delegates something, or moves this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    hierarchies: Vec<Hierarchy>,
}

impl Host {
    /// Asks the kernel.
    ///
    /// # Errors
    /// When `/proc` cannot be read. A kernel without control groups is no error.
    pub fn detect() -> Result<Self, CgroupError> {
        let cgroup = match read(Path::new("/proc/self/cgroup")) {
            // So it is on kernels that were built without control groups.
            Err(CgroupError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                String::new()
            }
            result => result?,
        };
        Ok(Self::from_texts(
            &cgroup,
            &read(Path::new("/proc/self/mountinfo"))?,
        ))
    }

    /// The same for whoever has the texts of `/proc/PID/cgroup` and `/proc/PID/mountinfo`
    /// already, perhaps without the hierarchies that are to be left alone. The directories that
    /// they name are looked at.
    #[must_use]
    pub fn from_texts(cgroup: &str, mountinfo: &str) -> Self {
        let mounts = cgroup_mounts(mountinfo);
        let places = memberships(cgroup);
        Self {
            hierarchies: places
                .iter()
                .map(|place| Hierarchy::of(place, &mounts))
                .collect(),
        }
    }

    /// All hierarchies, also those that are of no use.
    #[must_use]
    pub fn hierarchies(&self) -> &[Hierarchy] {
        &self.hierarchies
    }

    /// How the two generations share the machine.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let visible = || {
            self.hierarchies
                .iter()
                .filter(|h| h.access != Access::NotVisible)
        };
        let has_unified = visible().any(|hierarchy| hierarchy.version == Version::V2);
        let has_legacy = visible()
            .any(|hierarchy| hierarchy.version == Version::V1 && !hierarchy.controllers.is_empty());
        match (has_unified, has_legacy) {
            (true, false) => Mode::Unified,
            (true, true) => Mode::Hybrid,
            (false, true) => Mode::Legacy,
            (false, false) => Mode::None,
        }
    }

    /// The hierarchy of the second generation, when groups can be made in it.
    #[must_use]
    pub fn unified(&self) -> Option<&Hierarchy> {
        self.writable()
            .find(|hierarchy| hierarchy.version == Version::V2)
    }

    /// The hierarchy in which groups get `controller`, when there is one.
    #[must_use]
    pub fn hierarchy_of(&self, controller: Controller) -> Option<&Hierarchy> {
        self.writable()
            .find(|hierarchy| hierarchy.controllers.contains(&controller))
    }

    /// Why groups get no `controller`; [`Reason::Absent`] when no hierarchy knows it.
    #[must_use]
    pub fn reason_against(&self, controller: Controller) -> Reason {
        let knows = |hierarchy: &&Hierarchy| {
            hierarchy.controllers.contains(&controller)
                || hierarchy
                    .withheld
                    .iter()
                    .any(|(withheld, _)| *withheld == controller)
        };
        let known = self.hierarchies.iter().filter(knows);
        if let Some(reason) = known.filter_map(|it| it.reason_against(controller)).next() {
            return reason;
        }
        // Where everything is of the second generation, what our place does not list may still
        // be further up.
        let unified = self
            .hierarchies
            .iter()
            .find(|hierarchy| hierarchy.version == Version::V2);
        match (self.mode(), unified) {
            (Mode::Unified | Mode::None, Some(unified)) => unified
                .reason_against(controller)
                .unwrap_or(Reason::NotDelegated),
            _ => Reason::Absent,
        }
    }

    pub(super) fn writable(&self) -> impl Iterator<Item = &Hierarchy> {
        self.hierarchies
            .iter()
            .filter(|hierarchy| hierarchy.access == Access::Writable)
    }
}

/// Reads a file of the kernel, which does not tell its size: to find that out piece by piece takes a
/// call for each.
pub(super) fn read(path: &Path) -> Result<String, CgroupError> {
    const USUAL_BYTES: usize = 4 * 1024;
    let mut text = String::with_capacity(USUAL_BYTES);
    let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|source| CgroupError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(text)
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod detect_tests;
