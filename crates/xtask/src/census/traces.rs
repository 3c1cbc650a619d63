//! What a run could leave in the file system: mounts, and files that carry our name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where programs put what they mean to remove, or to find again.
const SHARED_DIRECTORIES: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock"];

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

    /// What was not there `before`, and what is not there any more.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = self.seen.difference(&before.seen);
        let gone = before.seen.difference(&self.seen);
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
    fn changes_in_both_directions_are_told() {
        let traces = |seen: &[&str]| Traces {
            seen: seen.iter().map(|trace| (*trace).to_owned()).collect(),
        };
        let before = traces(&["mount /", "file /tmp/zareba-old"]);
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
