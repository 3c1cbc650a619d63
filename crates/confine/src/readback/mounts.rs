//! What is mounted, compared with what the policy says (NS-3).
//!
//! A mount that is made read-only without success can look like one that was: so all of them are
//! read back, and one that is missing, too much, or less strict than it should be is an error.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{
    ProcessDirectory,
    error::{MountFault, ReadBackError},
    mount_table::{MountFlags, MountLine, parse_mounts},
};
use crate::{
    policy::{Access, EntryKind, Overlay, Policy, Root},
    root::{
        DEVICES, DEVICES_AT, MASKED_DIRECTORIES, MASKED_FILES, PROCESSES_AT, SETTINGS, masked_here,
    },
};

/// What is set of what can be written to.
const PLAIN: MountFlags = MountFlags {
    read_only: false,
    no_set_id: true,
    no_devices: true,
    no_execution: false,
};

/// What is set of what cannot.
const READ_ONLY: MountFlags = MountFlags {
    read_only: true,
    ..PLAIN
};

/// What is set of device nodes and terminals.
const DEVICE: MountFlags = MountFlags {
    read_only: false,
    no_set_id: true,
    no_devices: false,
    no_execution: true,
};

/// What is set of `/proc`.
const PROCESSES: MountFlags = MountFlags {
    no_execution: true,
    ..PLAIN
};

/// Everything that is mounted in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use = "an unread report hides a sandbox weaker than the one requested"]
pub struct MountReport {
    /// In the order in which they were made.
    pub mounts: Vec<MountInForce>,
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MountInForce {
    /// Where it is, inside.
    pub point: String,
    /// The type of its file system.
    pub file_system: String,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Whether set-id bits mean nothing.
    pub no_set_id: bool,
    /// Whether device nodes cannot be opened.
    pub no_devices: bool,
    /// Whether nothing can be executed.
    pub no_execution: bool,
}

/// Finds out ahead what checks compare with.
pub(crate) fn look_ahead() {
    masked_here();
}

/// Compares what is mounted for a process with a policy.
///
/// # Errors
/// The first mount that is missing, too much, or less strict than the policy wants it.
pub fn check_mounts(
    process: &ProcessDirectory,
    policy: &Policy,
) -> Result<MountReport, ReadBackError> {
    let found = parse_mounts(&process.mount_table()?)?;
    let remembered = |path: &str| masked_here().iter().any(|(known, _)| *known == path);
    compare_again(&found, policy, remembered, |path| Path::new(path).exists())?;
    Ok(MountReport {
        mounts: found.into_iter().map(in_force).collect(),
    })
}

/// Compares with what `/proc` had when somebody looked and what has come since: a kernel learns
/// something new when a module is loaded. If that does not fit, with what is there now.
pub(super) fn compare_again(
    found: &[MountLine],
    policy: &Policy,
    remembered: impl Fn(&str) -> bool,
    exists: impl Fn(&str) -> bool,
) -> Result<(), ReadBackError> {
    let known = expected(policy, |path| remembered(path) || exists(path));
    compare(found, &known).or_else(|_| compare(found, &expected(policy, exists)))
}

fn in_force(line: MountLine) -> MountInForce {
    MountInForce {
        point: line.point.to_string_lossy().into_owned(),
        file_system: line.file_system,
        read_only: line.flags.read_only,
        no_set_id: line.flags.no_set_id,
        no_devices: line.flags.no_devices,
        no_execution: line.flags.no_execution,
    }
}

/// A mount that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) point: PathBuf,
    pub(super) flags: MountFlags,
    /// `None` is whatever is bound there.
    pub(super) file_system: Option<&'static str>,
}

impl Expected {
    fn new(
        point: impl Into<PathBuf>,
        flags: MountFlags,
        file_system: impl Into<Option<&'static str>>,
    ) -> Self {
        Self {
            point: point.into(),
            flags,
            file_system: file_system.into(),
        }
    }

    fn overlay(point: &Path, overlay: &Overlay) -> Self {
        let flags = match overlay.layer {
            Some(_) => PLAIN,
            None => READ_ONLY,
        };
        Self::new(point, flags, "overlay")
    }
}

/// Every mount that a policy asks for, in order. What `/proc` has is the same for all of them,
/// so `exists` may look at the caller's own.
pub(super) fn expected(policy: &Policy, exists: impl Fn(&str) -> bool) -> Vec<Expected> {
    let mut expected = vec![match &policy.root {
        Root::Memory => Expected::new("/", READ_ONLY, "tmpfs"),
        Root::Overlay(overlay) => Expected::overlay(Path::new("/"), overlay),
    }];
    for entry in &policy.entries {
        let point = entry.inside.as_path();
        expected.extend(match &entry.kind {
            EntryKind::Bind { access, .. } | EntryKind::Again { access } => {
                Some(Expected::new(point, flags_of(*access), None))
            }
            EntryKind::Overlay(overlay) => Some(Expected::overlay(point, overlay)),
            EntryKind::Memory { .. } => Some(Expected::new(point, PLAIN, "tmpfs")),
            EntryKind::Link { .. } | EntryKind::Directory { .. } => None,
        });
    }
    expected.push(Expected::new("/tmp", PLAIN, "tmpfs"));
    expected.push(Expected::new(DEVICES_AT, READ_ONLY, "tmpfs"));
    let devices = DEVICES.map(|name| Expected::new(Path::new(DEVICES_AT).join(name), DEVICE, None));
    expected.extend(devices);
    expected.push(Expected::new("/dev/pts", DEVICE, "devpts"));
    expected.push(Expected::new("/dev/shm", PLAIN, "tmpfs"));
    expected.push(Expected::new(PROCESSES_AT, PROCESSES, "proc"));
    let files = MASKED_FILES.into_iter().filter(|path| exists(path));
    expected.extend(files.map(|path| Expected::new(path, DEVICE, None)));
    let directories = MASKED_DIRECTORIES.into_iter().filter(|path| exists(path));
    expected.extend(directories.map(|path| Expected::new(path, READ_ONLY, "tmpfs")));
    let settings = MountFlags {
        read_only: true,
        ..PROCESSES
    };
    expected.push(Expected::new(SETTINGS, settings, "proc"));
    expected
}

fn flags_of(access: Access) -> MountFlags {
    match access {
        Access::ReadOnly => READ_ONLY,
        Access::ReadWrite => PLAIN,
    }
}

/// Pairs each mount with what was expected at its point, in order. What is left may only be
/// below something bound, which brings its own mounts along.
pub(super) fn compare(found: &[MountLine], expected: &[Expected]) -> Result<(), ReadBackError> {
    let mut waiting: Vec<Option<&Expected>> = expected.iter().map(Some).collect();
    for mount in found {
        if mount.is_shared {
            return Err(fault(&mount.point, MountFault::Shared));
        }
        let slot = waiting
            .iter_mut()
            .find(|slot| slot.is_some_and(|expected| is_at(expected, mount)));
        match slot.and_then(Option::take) {
            Some(expected) => check_one(mount, expected)?,
            None => check_brought_along(mount, expected)?,
        }
    }
    match waiting.into_iter().flatten().next() {
        Some(missing) => Err(fault(&missing.point, MountFault::Missing)),
        None => Ok(()),
    }
}

/// Letter by letter: part by part it would take longer than all else here, and both are plain.
fn is_at(expected: &Expected, mount: &MountLine) -> bool {
    expected.point.as_os_str() == mount.point.as_os_str()
}

fn check_one(mount: &MountLine, expected: &Expected) -> Result<(), ReadBackError> {
    if expected
        .file_system
        .is_some_and(|wanted| wanted != mount.file_system)
    {
        let found = mount.file_system.clone();
        return Err(fault(&mount.point, MountFault::FileSystem { found }));
    }
    check_flags(mount, expected.flags)
}

/// The nearest expected mount above it must be a bind, and it must be as strict.
fn check_brought_along(mount: &MountLine, expected: &[Expected]) -> Result<(), ReadBackError> {
    let above = expected
        .iter()
        .filter(|candidate| {
            mount.point.starts_with(&candidate.point) && mount.point != candidate.point
        })
        .max_by_key(|candidate| candidate.point.components().count());
    match above {
        Some(bind) if bind.file_system.is_none() => check_flags(mount, bind.flags),
        _ => Err(fault(&mount.point, MountFault::Unexpected)),
    }
}

fn check_flags(mount: &MountLine, wanted: MountFlags) -> Result<(), ReadBackError> {
    if mount.flags.include(wanted) {
        return Ok(());
    }
    let missing = [
        ("ro", wanted.read_only, mount.flags.read_only),
        ("nosuid", wanted.no_set_id, mount.flags.no_set_id),
        ("nodev", wanted.no_devices, mount.flags.no_devices),
        ("noexec", wanted.no_execution, mount.flags.no_execution),
    ]
    .into_iter()
    .filter(|(_, wanted, found)| wanted > found)
    .map(|(name, ..)| name);
    let missing = missing.collect::<Vec<_>>().join(",");
    Err(fault(&mount.point, MountFault::Lax { missing }))
}

fn fault(point: &Path, fault: MountFault) -> ReadBackError {
    ReadBackError::Mount {
        point: point.to_string_lossy().into_owned(),
        fault,
    }
}
