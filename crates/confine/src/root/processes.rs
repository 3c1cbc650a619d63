//! `/proc`: a fresh one for the sandbox's own processes, without what it tells of, or reaches
//! into, the machine outside (NS-5).

use std::{fs, io, path::Path, sync::LazyLock};

use super::store::Store;
use crate::{
    mounts::{self, Detached, NewRoot, Shape},
    quotas::{self, Account},
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

/// What this machine's `/proc` has of what is masked. Asked for once: there are two dozen, and most
/// kernels never change their mind.
pub(crate) fn masked_here() -> &'static [(&'static str, Shape)] {
    static FOUND: LazyLock<Vec<(&str, Shape)>> = LazyLock::new(|| {
        let masked = MASKED_FILES.into_iter().chain(MASKED_DIRECTORIES);
        let shape = |path| match fs::symlink_metadata(path).ok()?.is_dir() {
            true => Some((path, Shape::Directory)),
            false => Some((path, Shape::Other)),
        };
        masked.filter_map(shape).collect()
    });
    &FOUND
}

pub(super) fn mount(root: &NewRoot, store: &Store) -> Result<(), Failure> {
    let proc = Detached::proc().at(Step::Proc, "proc")?;
    root.mount(Path::new(PROCESSES_AT), &proc)
        .at(Step::Proc, PROCESSES_AT)?;
    let mut masks = Masks::new(root, store);
    let here = masked_here();
    for path in MASKED_FILES.into_iter().chain(MASKED_DIRECTORIES) {
        let remembered = here.iter().find(|(known, _)| *known == path);
        let remembered = remembered.map(|(_, shape)| *shape);
        masks.cover(path, remembered).at(Step::Proc, path)?;
    }
    Ok(())
}

/// What covers files and directories. The first of each kind is made; all others are copies of
/// it, which take a tenth of the time.
struct Masks<'a> {
    root: &'a NewRoot,
    store: &'a Store,
    file: Option<Detached>,
    directory: Option<Detached>,
}

impl<'a> Masks<'a> {
    fn new(root: &'a NewRoot, store: &'a Store) -> Self {
        Self {
            root,
            store,
            file: None,
            directory: None,
        }
    }

    /// Covers what is at a path of the new root, if anything. What was there before need not be
    /// looked for.
    fn cover(&mut self, path: &str, remembered: Option<Shape>) -> io::Result<()> {
        let path = Path::new(path);
        if let Some(shape) = remembered
            && self.cover_with(path, shape).is_ok()
        {
            return Ok(());
        }
        match self.root.find(path)? {
            Some(shape) => self.cover_with(path, shape),
            None => Ok(()),
        }
    }

    fn cover_with(&mut self, path: &Path, shape: Shape) -> io::Result<()> {
        let first = match shape {
            Shape::Directory => &mut self.directory,
            Shape::Other => &mut self.file,
        };
        if let Some(first) = first {
            return self.root.cover_found(path, &first.copy()?);
        }
        let made = match shape {
            Shape::Directory => self.store.make_empty()?,
            Shape::Other => Detached::device(Path::new("/dev/null"))?,
        };
        self.root.cover_found(path, &made)?;
        *first = Some(made);
        Ok(())
    }
}

/// Lowers what the kernel gives to each user, makes its settings unwritable, and asks for the one
/// that matters most.
pub(crate) fn seal_settings(account: Account) -> Result<(), Failure> {
    // A view of a directory counts as a namespace of mounts until it is attached.
    mounts::make_read_only(Path::new(SETTINGS), || quotas::lower(account))?
        .at(Step::Proc, SETTINGS)?;
    let nested = fs::read_to_string(NESTED_NAMESPACES);
    match nested.at(Step::NestedNamespaces, NESTED_NAMESPACES)?.trim() {
        "0" => Ok(()),
        other => Err(io::Error::from(io::ErrorKind::InvalidData)).at(
            Step::NestedNamespaces,
            format!("{NESTED_NAMESPACES}: {other}"),
        ),
    }
}
