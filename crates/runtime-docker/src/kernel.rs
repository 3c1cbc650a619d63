//! What the kernel says of a container's first process, beside what the Engine says of it (DK-1).
//!
//! Read before the executor gets its key, so that nothing has run inside yet. Where the Engine's
//! processes are not this machine's, there is nothing to read, and that is told as well.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::pin::Pinned;

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
    #[error(
        "the kernel sends the memory of every crashed program to a socket of this machine \
        (`kernel.core_pattern` begins with `@`), and no limit keeps a container from it: as root, choose a \
        file (`sysctl -w kernel.core_pattern=core`) or a program"
    )]
    CrashSocket,
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

/// Whether crashes inside stay inside. A limit keeps the kernel from starting a program outside for them,
/// and none from sending them to a socket, which it can from Linux 6.16 on (NS-7).
pub(crate) fn check_crashes() -> Result<(), HoldError> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern");
    check_crashes_to(&pattern.unwrap_or_default())
}

fn check_crashes_to(pattern: &str) -> Result<(), HoldError> {
    match pattern.starts_with('@') {
        true => Err(HoldError::CrashSocket),
        false => Ok(()),
    }
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
pub(crate) fn check_mounts(pid: i64, pinned: &[Pinned]) -> Result<(), HoldError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    pinned.iter().try_for_each(|pinned| pinned.check(pid))
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
    fn crashes_that_go_to_a_socket_are_refused_ns_7() {
        for harmless in ["core", "/var/crash/%p", "|/usr/lib/handler %P", ""] {
            assert!(check_crashes_to(harmless).is_ok(), "{harmless}");
        }
        for socket in ["@/run/crashes.socket", "@@/run/crashes.socket"] {
            let refusal = check_crashes_to(socket).unwrap_err().to_string();
            assert!(refusal.contains("kernel.core_pattern"), "{refusal}");
        }
    }

    #[test]
    fn a_process_of_somebody_else_is_not_read() {
        let us = i64::from(std::process::id());
        assert_eq!(read(us, "0123456789abcdef"), None);
        assert_eq!(read(i64::MAX, ""), None);
    }
}
