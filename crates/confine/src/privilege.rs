//! Whether this process makes sandboxes with root's rights over the machine.
//!
//! The number 0 alone says little: root of a user namespace, as in a container without root, has no
//! right to users that are not mapped there, and is an ordinary user outside. Root of the machine
//! without capabilities, as in most containers, cannot make a sandbox, and must not be taken for an
//! ordinary user either: what it starts would still own root's files and the settings of the kernel.

use std::{fs, io, sync::OnceLock};

use rustix::thread::CapabilitySet;

/// All users of a machine, in the words of the kernel.
const EVERY_USER: [&str; 3] = ["0", "0", "4294967295"];

/// What is needed to make a sandbox with root's rights.
const NEEDED: [(CapabilitySet, &str); 9] = [
    (CapabilitySet::SYS_ADMIN, "SYS_ADMIN"),
    (CapabilitySet::SYS_PTRACE, "SYS_PTRACE"),
    (CapabilitySet::SETUID, "SETUID"),
    (CapabilitySet::SETGID, "SETGID"),
    (CapabilitySet::SETPCAP, "SETPCAP"),
    (CapabilitySet::CHOWN, "CHOWN"),
    (CapabilitySet::FOWNER, "FOWNER"),
    (CapabilitySet::DAC_OVERRIDE, "DAC_OVERRIDE"),
    (CapabilitySet::KILL, "KILL"),
];

/// Whether this process is root of the machine, and not of a user namespace only.
///
/// What it finds first holds for the process and its copies.
pub fn is_root_of_machine() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        rustix::process::geteuid().is_root()
            && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps_every_user(&map))
    })
}

/// Checks that root of the machine can make a sandbox; others need nothing.
///
/// # Errors
/// Names the capabilities that are missing, and what to do.
pub fn require_capabilities() -> io::Result<()> {
    if !is_root_of_machine() {
        return Ok(());
    }
    let effective = rustix::thread::capabilities(None)?.effective;
    let missing = missing(effective);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    let problem = format!(
        "root lacks {names} here: start it as an ordinary user, or give root these capabilities (of a container: \
         `docker run --cap-add …`)"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

fn missing(effective: CapabilitySet) -> Vec<&'static str> {
    let lacks = NEEDED
        .iter()
        .filter(|(needed, _)| !effective.contains(*needed));
    lacks.map(|(_, name)| *name).collect()
}

fn maps_every_user(map: &str) -> bool {
    map.split_ascii_whitespace().eq(EVERY_USER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_map_of_all_users_is_that_of_the_machine() {
        let maps = [
            "         0          0 4294967295\n",
            "         0       1000          1\n",
            "         0          0          1\n",
            "0 1000 1\n1 100000 65536\n",
            "",
        ];
        assert_eq!(
            maps.map(maps_every_user),
            [true, false, false, false, false]
        );
    }

    #[test]
    fn what_a_container_takes_from_root_is_named() {
        let of_a_container = CapabilitySet::all()
            .difference(CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_PTRACE));
        assert_eq!(missing(of_a_container), ["SYS_ADMIN", "SYS_PTRACE"]);
        assert_eq!(missing(CapabilitySet::all()), [""; 0]);
    }
}
