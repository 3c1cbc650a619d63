//! `/proc`: a fresh one for the sandbox's own processes, without what it tells of, or reaches
//! into, the machine outside (NS-5).

use std::{io, path::Path};

use rustix::fs::FileType;

use super::{prepare::text, store::Store};
use crate::{
    mounts::{self, Detached, NewRoot},
    step::{AtStep as _, Failure, Step},
};

pub(crate) const PROCESSES_AT: &str = "/proc";

/// Files that are covered with nothing where the kernel has them. What is left tells of load,
/// memory and processors, which build tools and language runtimes ask for.
pub(crate) const MASKED_FILES: [&str; 19] = [
    "/proc/config.gz",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/sched_debug",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
];

/// Directories that are.
pub(crate) const MASKED_DIRECTORIES: [&str; 6] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
];

/// Settings of the kernel: to be read, not written.
pub(crate) const SETTINGS: &str = "/proc/sys";

/// How many user namespaces may be made inside; no more may be, or the sandbox could gain
/// capabilities in one of its own (NS-9).
const NESTED_NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";

pub(super) fn mount(root: &NewRoot, store: &Store) -> Result<(), Failure> {
    let proc = Detached::proc().at(Step::Proc, "proc")?;
    root.mount(Path::new(PROCESSES_AT), &proc)
        .at(Step::Proc, PROCESSES_AT)?;
    let mut masks = Masks::default();
    for path in MASKED_FILES
        .iter()
        .chain(&MASKED_DIRECTORIES)
        .map(Path::new)
    {
        masks.cover(root, store, path).at(Step::Proc, text(path))?;
    }
    Ok(())
}

/// What covers files and directories. The first of each kind is made; all others are copies of
/// it, which take a tenth of the time.
#[derive(Default)]
struct Masks {
    file: Option<Detached>,
    directory: Option<Detached>,
}

impl Masks {
    /// Covers what is at a path of the new root, if anything.
    fn cover(&mut self, root: &NewRoot, store: &Store, path: &Path) -> io::Result<()> {
        let Some(kind) = root.find(path)? else {
            return Ok(());
        };
        let first = match kind {
            FileType::Directory => &mut self.directory,
            _ => &mut self.file,
        };
        if let Some(first) = first {
            return root.cover_found(path, &first.copy()?);
        }
        let made = match kind {
            FileType::Directory => store.make_empty()?,
            _ => Detached::device(Path::new("/dev/null"))?,
        };
        root.cover_found(path, first.insert(made))
    }
}

/// Makes the kernel's settings unwritable, and asks for the one that was written before.
pub(crate) fn seal_settings() -> Result<(), Failure> {
    mounts::make_read_only(Path::new(SETTINGS)).at(Step::Proc, SETTINGS)?;
    let nested = std::fs::read_to_string(NESTED_NAMESPACES);
    match nested.at(Step::NestedNamespaces, NESTED_NAMESPACES)?.trim() {
        "0" => Ok(()),
        other => Err(io::Error::from(io::ErrorKind::InvalidData)).at(
            Step::NestedNamespaces,
            format!("{NESTED_NAMESPACES}: {other}"),
        ),
    }
}
