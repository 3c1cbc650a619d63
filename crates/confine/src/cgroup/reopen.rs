//! Finding groups again that an earlier process made: a sandbox outlives its server, and what
//! nobody claims has to be swept.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{
    CgroupError, Demand, Group, HOME, Hierarchy, Host, Limit, Outcome, Report, Version, check_name,
    directory::{Directory, is_gone},
    seats::{Holder, Seat, Seats},
    v2,
};

/// From here on the first generation means "no limit": the largest number of whole pages.
const UNLIMITED_BYTES: u64 = 1 << 62;

impl Host {
    /// The ids, in order, of all groups below `zareba/` whose id starts with `prefix`. What is
    /// not named as ours are is left out, and so is everything elsewhere.
    ///
    /// A server that started in another place of the hierarchies has its groups there; those
    /// are reached by [`Group::open_at`].
    ///
    /// # Errors
    /// When a directory of ours cannot be listed.
    pub fn find_all(&self, prefix: &str) -> Result<Vec<String>, CgroupError> {
        let mut found = BTreeSet::new();
        for home in self.writable().flat_map(homes) {
            let names = match Directory::open(&home).and_then(|home| home.children()) {
                Err(error) if is_gone(&error) => continue,
                names => names.map_err(|source| CgroupError::Read { path: home, source })?,
            };
            let is_ours = |name: &String| name.starts_with(prefix) && check_name(name).is_ok();
            found.extend(names.into_iter().filter(is_ours));
        }
        Ok(found.into_iter().collect())
    }
}

impl Group {
    /// The group of that id, as far as it is there; `None` when no hierarchy has it.
    ///
    /// # Errors
    /// When the id is senseless or a directory cannot be opened.
    pub fn open(host: &Host, id: &str) -> Result<Option<Self>, CgroupError> {
        check_name(id)?;
        let directories: Vec<PathBuf> = host
            .writable()
            .flat_map(homes)
            .map(|home| home.join(id))
            .collect();
        Self::open_at(host, &directories)
    }

    /// The group that was recorded with these [directories](Group::directories), wherever its
    /// server was then; `None` when all of them are gone.
    ///
    /// # Errors
    /// [`CgroupError::Foreign`] when one is not the place of a sandbox in a hierarchy of this
    /// machine, or not of the same sandbox as the others: a record may be old or forged, and
    /// what it names could be killed and removed.
    pub fn open_at(host: &Host, directories: &[PathBuf]) -> Result<Option<Self>, CgroupError> {
        let mut seats = Seats::default();
        let mut id: Option<&str> = None;
        for path in directories {
            let foreign = || CgroupError::Foreign { path: path.clone() };
            let name = name_of_ours(path).ok_or_else(foreign)?;
            if *id.get_or_insert(name) != name {
                return Err(foreign());
            }
            let (hierarchy, place) = hierarchy_at(host, path).ok_or_else(foreign)?;
            match Directory::open(path) {
                Ok(directory) => seats.0.push(seat_of(hierarchy, place, directory)),
                Err(error) if is_gone(&error) => {}
                Err(source) => {
                    return Err(CgroupError::Io {
                        deed: "open",
                        path: path.clone(),
                        source,
                    });
                }
            }
        }
        let Some(id) = id.filter(|_| !seats.0.is_empty()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: id.to_owned(),
            seats,
            report: OnceLock::new(),
            demand: Demand::BestEffort,
        }))
    }
}

/// Where groups of ours may be in a hierarchy: below our place, and where the second generation
/// has controllers below its root, which is the fallback of those who may write there.
fn homes(hierarchy: &Hierarchy) -> BTreeSet<PathBuf> {
    let has_controllers = !(hierarchy.controllers.is_empty() && hierarchy.withheld.is_empty());
    let may_be_at_root = hierarchy.version == Version::V2 && has_controllers;
    let root = hierarchy.mount.as_ref().filter(|_| may_be_at_root);
    let root = root.map(|mount| mount.mount_point.clone());
    root.into_iter()
        .chain([hierarchy.directory.clone()])
        .map(|place| place.join(HOME))
        .collect()
}

/// The id in a path of the form `.../zareba/ID` without detours.
fn name_of_ours(path: &Path) -> Option<&str> {
    let is_plain = path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_at_home = path.parent()?.file_name()? == HOME;
    let name = path.file_name()?.to_str()?;
    (is_plain && is_at_home && check_name(name).is_ok()).then_some(name)
}

/// The hierarchy that a directory is in, and what `/proc/PID/cgroup` calls the directory.
fn hierarchy_at<'a>(host: &'a Host, directory: &Path) -> Option<(&'a Hierarchy, String)> {
    let places = host.hierarchies().iter().filter_map(|hierarchy| {
        let mount = hierarchy.mount.as_ref()?;
        let path = mount.path_of(directory)?;
        Some((hierarchy, path, mount.mount_point.as_os_str().len()))
    });
    // The innermost mount, should one lie below another.
    let (hierarchy, path, _) = places.max_by_key(|(_, _, length)| *length)?;
    Some((hierarchy, path))
}

fn seat_of(hierarchy: &Hierarchy, path: String, directory: Directory) -> Seat {
    Seat {
        hierarchy: hierarchy.name.clone(),
        version: hierarchy.version,
        controllers: match hierarchy.version {
            Version::V1 => hierarchy.controllers.clone(),
            Version::V2 => v2::controllers_of(&directory),
        },
        directory: Arc::new(directory),
        path,
        holder: Holder::Own,
    }
}

/// What the kernel enforces now; why something is missing is not known any more.
pub(super) fn current(seats: &Seats) -> Report {
    let outcome = |limit: Limit| {
        let enforced = seats.with(limit.controller()).and_then(|seat| {
            let (file, is_set) = file_of(limit, seat.version);
            let value = seat
                .directory
                .read(file)
                .ok()
                .filter(|value| is_set(value))?;
            Some(Outcome::Enforced {
                version: seat.version,
                file,
                value,
            })
        });
        enforced.unwrap_or(Outcome::NotRequested)
    };
    Report {
        limits: Limit::ALL.map(|limit| (limit, outcome(limit))).into(),
        freeze: seats.freeze_means(),
        kill: seats.kill_means(),
    }
}

/// The file that holds a limit, and how to tell that one is set.
fn file_of(limit: Limit, version: Version) -> (&'static str, fn(&str) -> bool) {
    let is_bytes = |value: &str| {
        value
            .parse()
            .is_ok_and(|bytes: u64| bytes < UNLIMITED_BYTES)
    };
    match (limit, version) {
        (Limit::Memory, Version::V1) => ("memory.limit_in_bytes", is_bytes),
        (Limit::Swap, Version::V1) => ("memory.memsw.limit_in_bytes", is_bytes),
        (Limit::Cpu, Version::V1) => ("cpu.cfs_quota_us", |value| value != "-1"),
        (Limit::Io, Version::V1) => ("blkio.throttle.write_bps_device", |value| !value.is_empty()),
        (Limit::Memory, Version::V2) => ("memory.max", |value| value != "max"),
        (Limit::Swap, Version::V2) => ("memory.swap.max", |value| value != "max"),
        (Limit::Cpu, Version::V2) => ("cpu.max", |value| !value.starts_with("max")),
        (Limit::Io, Version::V2) => ("io.max", |value| !value.is_empty()),
        (Limit::Pids, Version::V1 | Version::V2) => ("pids.max", |value| value != "max"),
    }
}
