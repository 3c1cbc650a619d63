//! `/dev`: harmless devices, terminals of the sandbox's own, and shared memory.
//!
//! Devices and names are the same in every sandbox and cannot be changed in any. So a process that
//! others are copies of puts them together once, and each sandbox gets a copy of the mounts. That takes
//! root, and a kernel that puts mounts on what nobody sees yet (Linux 6.15); elsewhere each sandbox
//! puts together its own.

use std::{
    os::fd::{AsFd as _, AsRawFd as _},
    path::Path,
    sync::OnceLock,
};

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

/// Places of what each sandbox has of its own.
const TERMINALS: &str = "pts";
const SHARED_MEMORY: &str = "shm";

/// What holds the names of a directory that is made once.
const NAMES_CAP: MemoryCap = MemoryCap {
    bytes: 64 * 1024,
    inodes: 64,
};

/// What was put together before this process was copied, if it is a copy.
static READY: OnceLock<Detached> = OnceLock::new();

/// Puts together what is the same in every sandbox, for copies of this process.
pub(crate) fn look_ahead() {
    if let Ok(ready) = make_ready() {
        let _ = READY.set(ready);
    }
}

fn make_ready() -> Result<Detached, Failure> {
    let made = Detached::memory(NAMES_CAP, 0o755).at(Step::Devices, DEVICES_AT)?;
    let root = NewRoot::detached(&made).at(Step::Devices, DEVICES_AT)?;
    furnish(&root, Path::new("/"))?;
    made.seal().at(Step::Devices, DEVICES_AT)?;
    Ok(made)
}

/// A copy of what was put together, if there is one. For a sandbox whose launcher is the machine's root.
pub(super) fn copy_ready() -> Option<Detached> {
    READY.get()?.copy_all().ok()
}

/// The number of the descriptor that holds it.
pub(crate) fn ready_descriptor() -> Option<i32> {
    READY.get().map(|ready| ready.as_fd().as_raw_fd())
}

pub(super) fn make(root: &NewRoot, store: &Store, ready: Option<&Detached>) -> Result<(), Failure> {
    let directory = Path::new(DEVICES_AT);
    match ready {
        Some(ready) => root.mount(directory, ready).at(Step::Devices, DEVICES_AT)?,
        None => {
            let places = store.make(0o755);
            places
                .and_then(|places| root.mount(directory, &places))
                .at(Step::Devices, DEVICES_AT)?;
            furnish(root, directory)?;
        }
    }
    let terminals = directory.join(TERMINALS);
    Detached::terminals()
        .and_then(|made| root.mount(&terminals, &made))
        .at(Step::Devices, text(&terminals))?;
    let shared_memory = directory.join(SHARED_MEMORY);
    store
        .make(0o1777)
        .and_then(|made| root.mount(&shared_memory, &made))
        .at(Step::Devices, text(&shared_memory))?;
    match ready {
        Some(_) => Ok(()),
        None => root.make_read_only(directory).at(Step::Devices, DEVICES_AT),
    }
}

/// Makes what is the same in every sandbox.
fn furnish(root: &NewRoot, directory: &Path) -> Result<(), Failure> {
    for name in DEVICES {
        let device = Detached::device(&Path::new(DEVICES_AT).join(name));
        let mounted = device.and_then(|device| root.mount(&directory.join(name), &device));
        mounted.at(Step::Devices, name)?;
    }
    for (name, target) in LINKS {
        root.make_link(&directory.join(name), Path::new(target))
            .at(Step::Devices, name)?;
    }
    for name in [TERMINALS, SHARED_MEMORY] {
        root.make_directory(&directory.join(name), 0o755)
            .at(Step::Devices, name)?;
    }
    Ok(())
}
