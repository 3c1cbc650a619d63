//! `/dev`: harmless devices, terminals of the sandbox's own, and shared memory.

use std::path::Path;

use super::prepare::text;
use crate::{
    mounts::{Detached, NewRoot},
    policy::MemoryCap,
    step::{AtStep as _, Failure, Step},
};

pub(crate) const DEVICES_AT: &str = "/dev";

/// Everything else that a program could want stands for hardware.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Names that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// It holds places to mount on, and links.
const CAP: MemoryCap = MemoryCap {
    bytes: 64 * 1024,
    inodes: 64,
};

pub(super) fn make(root: &NewRoot, shared_memory: MemoryCap) -> Result<(), Failure> {
    let directory = Path::new(DEVICES_AT);
    mount_memory(root, directory, CAP, 0o755)?;
    for name in DEVICES {
        let path = directory.join(name);
        let mounted = Detached::device(&path).and_then(|device| root.mount(&path, &device));
        mounted.at(Step::Devices, text(&path))?;
    }
    let terminals = Detached::terminals().at(Step::Devices, "devpts")?;
    root.mount(&directory.join("pts"), &terminals)
        .at(Step::Devices, "/dev/pts")?;
    for (name, target) in LINKS {
        let path = directory.join(name);
        root.make_link(&path, Path::new(target))
            .at(Step::Devices, text(&path))?;
    }
    mount_memory(root, &directory.join("shm"), shared_memory, 0o1777)?;
    root.make_read_only(directory).at(Step::Devices, DEVICES_AT)
}

fn mount_memory(root: &NewRoot, inside: &Path, cap: MemoryCap, mode: u32) -> Result<(), Failure> {
    Detached::memory(cap, mode)
        .and_then(|memory| root.mount(inside, &memory))
        .at(Step::Devices, text(inside))
}
