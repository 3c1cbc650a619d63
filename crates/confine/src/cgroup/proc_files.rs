//! Readers of `/proc/PID/cgroup` and of the control-group lines of `/proc/PID/mountinfo`.
//!
//! Pure functions of text. A line that does not look as `proc(5)` says is left out: the worst
//! that can follow is a hierarchy that is reported as missing.

use std::path::{Path, PathBuf};

use super::Version;

/// One line of `/proc/PID/cgroup`: where a process is in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) hierarchy: HierarchyName,
    /// The place, as seen from the root of the reader's control-group namespace.
    pub(super) path: String,
}

/// What tells hierarchies apart: there is one of the second generation, and those of the first
/// are known by what is attached to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HierarchyName {
    Unified,
    Legacy(Vec<String>),
}

/// One mount of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CgroupMount {
    pub(super) version: Version,
    /// The place in the hierarchy that can be seen at the mount point.
    pub(super) root: String,
    pub(super) mount_point: PathBuf,
    pub(super) is_writable: bool,
    /// The options of the file system, among them the controllers of the first generation.
    options: Vec<String>,
}

impl CgroupMount {
    /// Whether this is a mount of `hierarchy`.
    pub(super) fn shows(&self, hierarchy: &HierarchyName) -> bool {
        match hierarchy {
            HierarchyName::Unified => self.version == Version::V2,
            HierarchyName::Legacy(controllers) => {
                self.version == Version::V1
                    && controllers.iter().all(|name| self.options.contains(name))
            }
        }
    }

    /// The directory that shows `path`, when it lies below the root of this mount.
    pub(super) fn directory_of(&self, path: &str) -> Option<PathBuf> {
        // A leading `..` means that the place is outside of the reader's namespace.
        let climbs = |path: &str| path.split('/').any(|part| part == "..");
        if climbs(path) || climbs(&self.root) {
            return None;
        }
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        Some(if below.as_os_str().is_empty() {
            self.mount_point.clone()
        } else {
            self.mount_point.join(below)
        })
    }

    /// What `/proc/PID/cgroup` calls `directory`, when it lies below this mount point.
    pub(super) fn path_of(&self, directory: &Path) -> Option<String> {
        let below = directory.strip_prefix(&self.mount_point).ok()?.to_str()?;
        Some(join(&self.root, below))
    }
}

/// `path` with `below` added, as the kernel writes it: the root alone ends in a slash.
pub(super) fn join(path: &str, below: &str) -> String {
    match (path.trim_end_matches('/'), below) {
        ("", "") => "/".to_owned(),
        (path, "") => path.to_owned(),
        (path, below) => format!("{path}/{below}"),
    }
}

/// The lines of a `/proc/PID/cgroup`.
pub(super) fn memberships(text: &str) -> Vec<Membership> {
    text.lines().filter_map(membership).collect()
}

fn membership(line: &str) -> Option<Membership> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    if !path.starts_with('/') {
        return None;
    }
    let hierarchy = match (number, controllers) {
        ("0", "") => HierarchyName::Unified,
        (_, "") => return None,
        (_, names) => HierarchyName::Legacy(names.split(',').map(str::to_owned).collect()),
    };
    Some(Membership {
        hierarchy,
        path: path.to_owned(),
    })
}

/// The control-group mounts among the lines of a `/proc/PID/mountinfo`, in its order.
pub(super) fn cgroup_mounts(text: &str) -> Vec<CgroupMount> {
    text.lines().filter_map(cgroup_mount).collect()
}

fn cgroup_mount(line: &str) -> Option<CgroupMount> {
    // The number of optional fields varies; a lone dash ends them.
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, mount_point, mount_options) = (mount.next()?, mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let version = match file_system.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options: Vec<String> = file_system.nth(1)?.split(',').map(str::to_owned).collect();
    let is_writable =
        mount_options.split(',').any(|option| option == "rw") && options.iter().any(|o| o == "rw");
    Some(CgroupMount {
        version,
        root: unescape(root)?,
        mount_point: PathBuf::from(unescape(mount_point)?),
        is_writable,
        options,
    })
}

/// Undoes the octal escapes that the kernel writes for blanks and backslashes.
fn unescape(field: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'\\').then(|| after.get(..3)).flatten();
        let value = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(value) = value {
            bytes.push(value);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "proc_files_tests.rs"]
mod proc_files_tests;
