//! What the kernel says of a container's first process, beside what the Engine says of it (DK-1).
//!
//! Read before the executor gets its key, so that nothing has run inside yet. Where the Engine's
//! processes are not this machine's, there is nothing to read, and that is told as well.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
use serde_json::{Value, json};

use crate::plan::{MountedSource, Plan};

/// What holds the first process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    uid: u32,
    gid: u32,
    /// All five sets together.
    capabilities: u64,
    no_new_privileges: bool,
    filtered: bool,
}

/// What is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Some capabilities were left on purpose.
    pub(crate) may_have_capabilities: bool,
}

/// Why it must not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error("the kernel does not hold the container as was asked for: {0}")]
    Loose(&'static str),
    #[error("what is mounted at `{target}` is not `{source_path}`, which was asked for",
        target = target.display(), source_path = source_path.display())]
    OtherMount {
        target: PathBuf,
        source_path: PathBuf,
    },
    #[error("the kernel cannot be asked what holds the container, and Podman does not tell; {0}")]
    Unseen(&'static str),
}

/// Reads it; `None` when the process is not one of this machine.
pub(crate) fn read(pid: i64, container: &str) -> Option<Held> {
    // Numbers mean something only here: the group that it is in is named like the container.
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    if pid <= 1 || !groups.contains(container) {
        return None;
    }
    parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<Held> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    let capabilities = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];
    let capabilities = capabilities.iter().try_fold(0, |all, name| {
        let some = u64::from_str_radix(field(name)?, 16).ok()?;
        Some(all | some)
    });
    Some(Held {
        uid: field("Uid:")?.parse().ok()?,
        gid: field("Gid:")?.parse().ok()?,
        capabilities: capabilities?,
        no_new_privileges: field("NoNewPrivs:")? == "1",
        filtered: field("Seccomp:")? == "2",
    })
}

impl Held {
    /// Whether it is held as was asked for.
    pub(crate) fn check(&self, wanted: Wanted) -> Result<(), HoldError> {
        let problem = if (self.uid, self.gid) != (wanted.uid, wanted.gid) {
            "it is another user"
        } else if self.capabilities != 0 && !wanted.may_have_capabilities {
            "it has capabilities"
        } else if !self.no_new_privileges {
            "it can gain rights"
        } else if !self.filtered {
            "its system calls are not filtered"
        } else {
            return Ok(());
        };
        Err(HoldError::Loose(problem))
    }

    /// For people.
    pub(crate) fn describe(&self) -> Value {
        json!({
            "uid": self.uid,
            "gid": self.gid,
            "capabilities": format!("{:016x}", self.capabilities),
            "no_new_privileges": self.no_new_privileges,
            "seccomp": if self.filtered { "filter" } else { "none" },
        })
    }
}

/// Whether what is mounted from this machine is what was looked at when it was decided: names can
/// come to mean something else until the Engine mounts them (G-4). Only root can look.
pub(crate) fn check_mounts(pid: i64, plan: &Plan, workspace: &Path) -> Result<(), HoldError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let volumes = plan
        .volumes
        .iter()
        .filter_map(|volume| match &volume.source {
            MountedSource::Host(path) => Some((path.as_path(), volume.target.as_path())),
            MountedSource::Named(_) | MountedSource::Overlay { .. } => None,
        });
    let given = plan.workspace.as_deref().map(|path| (path, workspace));
    for (source, target) in volumes.chain(given) {
        let is_same = inode_of(source)
            .and_then(|outside| Ok(outside == inode_inside(pid, target)?))
            .unwrap_or(false);
        if !is_same {
            return Err(HoldError::OtherMount {
                target: target.to_owned(),
                source_path: source.to_owned(),
            });
        }
    }
    Ok(())
}

fn inode_of(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Looked up as the container sees it: links of the image lead to where they do inside.
fn inode_inside(pid: i64, target: &Path) -> io::Result<(u64, u64)> {
    let root = fs::File::open(format!("/proc/{pid}/root"))?;
    let below = target.strip_prefix("/").unwrap_or(target);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(&root, below, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    let found = fstat(&found)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIGHT: &str = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t0\t0\t0\n\
        CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
        CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    const WANTED: Wanted = Wanted {
        uid: 1000,
        gid: 1000,
        may_have_capabilities: false,
    };

    fn check(status: &str) -> Option<String> {
        let held = parse(status).unwrap();
        held.check(WANTED).err().map(|error| error.to_string())
    }

    #[test]
    fn every_item_counts() {
        assert_eq!(check(TIGHT), None);
        for (from, to, words) in [
            ("Uid:\t1000", "Uid:\t0", "another user"),
            ("Gid:\t1000", "Gid:\t0", "another user"),
            ("CapBnd:\t0", "CapBnd:\t1", "capabilities"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "gain rights"),
            ("Seccomp:\t2", "Seccomp:\t0", "not filtered"),
        ] {
            let problem = check(&TIGHT.replace(from, to)).unwrap_or_default();
            assert!(problem.contains(words), "{to}: {problem}");
        }
    }

    #[test]
    fn a_process_of_somebody_else_is_not_read() {
        let us = i64::from(std::process::id());
        assert_eq!(read(us, "0123456789abcdef"), None);
        assert_eq!(read(i64::MAX, ""), None);
    }
}
