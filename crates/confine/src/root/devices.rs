//! `/dev`: harmless devices, terminals of the sandbox's own, and shared memory.

use std::path::Path;

use super::{prepare::text, store::Store};
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

pub(super) fn make(root: &NewRoot, store: &Store, shared_memory: MemoryCap) -> Result<(), Failure> {
    let directory = Path::new(DEVICES_AT);
    let places = store.make(0o755);
    places
        .and_then(|places| root.mount(directory, &places))
        .at(Step::Devices, DEVICES_AT)?;
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
    let shared = Detached::memory(shared_memory, 0o1777);
    shared
        .and_then(|shared| root.mount(&directory.join("shm"), &shared))
        .at(Step::Devices, "/dev/shm")?;
    root.make_read_only(directory).at(Step::Devices, DEVICES_AT)
}
