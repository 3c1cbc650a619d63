//! What a run could leave on the machine: mounts, files and control groups that carry our name,
//! and network namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where programs put what they mean to remove, or to find again.
const SHARED_DIRECTORIES: &[&str] = &[
    "/tmp",
    "/var/tmp",
    "/var/lib",
    "/dev/shm",
    "/run",
    "/run/lock",
];

/// Control groups are not looked for deeper than this below where they are mounted.
const GROUP_DEPTH_MAX: usize = 8;

/// The same below a home directory.
const HOME_DIRECTORIES: &[&str] = &["", ".cache", ".config", ".local/share", ".local/state"];

/// Everything of ours that can be seen at one moment, as lines to show to a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Traces {
    seen: BTreeSet<String>,
}

impl Traces {
    /// Looks at the machine; everything in `private` counts, whatever its name.
    pub(super) fn of_machine(private: Option<&Path>) -> anyhow::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("cannot read mounts")?;
        let mut seen = mount_points(&mounts);
        for root in group_roots(&mounts) {
            seen.extend(groups_below(&root));
        }
        seen.extend(network_namespaces());
        for directory in watched_directories() {
            if let Ok(names) = names_in(&directory) {
                let ours = names.into_iter().filter(|path| carries_our_name(path));
                seen.extend(ours.map(|path| format!("file {}", path.display())));
            }
        }
        if let Some(private) = private {
            let names = names_in(private)
                .with_context(|| format!("cannot list `{}`", private.display()))?;
            seen.extend(names.iter().map(|path| format!("file {}", path.display())));
        }
        Ok(Self { seen })
    }

    /// What was not there `before`, and what is not there any more. Control groups and network
    /// namespaces of others come to their end by themselves, and so does one of ours that an
    /// earlier run has left, when it is found empty.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = self.seen.difference(&before.seen);
        let stays = |trace: &&String| trace.starts_with("mount ") || trace.starts_with("file ");
        let gone = before.seen.difference(&self.seen).filter(stays);
        new.map(|trace| format!("left behind: {trace}"))
            .chain(gone.map(|trace| format!("taken away: {trace}")))
            .collect()
    }
}

fn watched_directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = SHARED_DIRECTORIES.iter().map(PathBuf::from).collect();
    if let Some(home) = std::env::home_dir() {
        directories.extend(HOME_DIRECTORIES.iter().map(|name| home.join(name)));
    }
    directories.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    directories
}

fn names_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect()
}

fn carries_our_name(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.trim_start_matches('.').starts_with("zareba"))
}

/// Where control groups of either generation are mounted: the type stands behind a dash.
fn group_roots(mountinfo: &str) -> Vec<PathBuf> {
    let is_group = |line: &&str| {
        let kind = line.split(" - ").nth(1);
        kind.is_some_and(|kind| kind.starts_with("cgroup"))
    };
    mountinfo
        .lines()
        .filter(is_group)
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .collect()
}

/// Groups with our name, and what is below them. Those that end meanwhile are left out.
fn groups_below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let path = entry.path();
            if carries_our_name(&path) {
                found.push(format!("control group {}", path.display()));
            } else if depth < GROUP_DEPTH_MAX {
                open.push((path, depth + 1));
            }
        }
    }
    found
}

/// Those that a process is in. One without processes is held by a mount or by nobody.
fn network_namespaces() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_link(process.path().join("ns/net")).ok())
        .map(|namespace| format!("network namespace {}", namespace.display()))
        .collect()
}

/// The fifth field of each line is where something is mounted.
fn mount_points(mountinfo: &str) -> BTreeSet<String> {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(|point| format!("mount {point}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_from_the_kernels_table() {
        let table =
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 22 0:5 / /proc rw shared:2 - proc proc rw\n";
        let expected = ["mount /", "mount /proc"].map(str::to_owned);
        assert_eq!(mount_points(table), BTreeSet::from(expected));
    }

    #[test]
    fn control_groups_are_found_by_their_type_and_their_name() {
        let table = "31 22 0:5 / /proc rw - proc proc rw\n\
                     32 22 0:6 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                     33 22 0:7 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        let expected = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(PathBuf::from);
        assert_eq!(group_roots(table), expected);
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("user/zareba/a")).unwrap();
        fs::create_dir_all(root.path().join("other")).unwrap();
        let found = root.path().join("user/zareba");
        let expected = [format!("control group {}", found.display())];
        assert_eq!(groups_below(root.path()), expected);
    }

    #[test]
    fn our_own_network_namespace_is_seen() {
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        let expected = format!("network namespace {}", ours.display());
        assert!(network_namespaces().contains(&expected));
    }

    #[test]
    fn changes_in_both_directions_are_told() {
        let traces = |seen: &[&str]| Traces {
            seen: seen.iter().map(|trace| (*trace).to_owned()).collect(),
        };
        let before = traces(&["mount /", "file /tmp/zareba-old", "control group /old"]);
        let after = traces(&["mount /", "mount /tmp/x"]);
        assert_eq!(
            after.changes_since(&before),
            [
                "left behind: mount /tmp/x",
                "taken away: file /tmp/zareba-old"
            ]
        );
        assert_eq!(after.changes_since(&after), [""; 0]);
    }

    #[test]
    fn everything_in_the_private_directory_counts() {
        let directory = tempfile::tempdir().unwrap();
        let before = Traces::of_machine(Some(directory.path())).unwrap();
        let file = directory.path().join("anything");
        fs::write(&file, "").unwrap();
        let after = Traces::of_machine(Some(directory.path())).unwrap();
        let expected = format!("left behind: file {}", file.display());
        assert!(after.changes_since(&before).contains(&expected));
    }

    #[test]
    fn our_name_is_seen_behind_a_dot() {
        let found = ["zareba-1", ".zareba", "zare", "x-zareba"]
            .map(|name| carries_our_name(Path::new(name)));
        assert_eq!(found, [true, true, false, false]);
    }
}
