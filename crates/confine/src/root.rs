//! The file system that a confined program sees, put together from a policy.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::mount::{MountPropagationFlags, mount_change};

use crate::{
    mounts::{self, Detached, NewRoot},
    owner_map::OwnerMap,
    policy::{Access, Entry, EntryKind, MemoryCap, Ownership, Policy},
    step::{AtStep as _, Failure, Step},
};

/// The root itself holds nothing but directories and links.
const ROOT_CAP: MemoryCap = MemoryCap {
    bytes: 1024 * 1024,
    inodes: 4096,
};

/// Harmless devices: everything else a program could want stands for hardware.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Names under `/dev` that programs expect.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Files of `/proc` that tell of, or reach into, the machine outside.
const MASKED_FILES: [&str; 6] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/sched_debug",
];

/// Directories of `/proc` that do.
const MASKED_DIRECTORIES: [&str; 2] = ["/proc/scsi", "/proc/acpi"];

/// Settings of the kernel: to be read, not written.
const READ_ONLY: [&str; 5] = [
    "/proc/sys",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/asound",
];

/// Trees that were made before the sandbox's own rights took effect, for each entry: a bind, or
/// what is below an overlay and last its layer. None when we are not the machine's root: others
/// make them inside, where they may.
pub(crate) type Prepared = Vec<Vec<Detached>>;

/// Makes the trees that the sandbox's own user could not reach by name.
pub(crate) fn prepare(policy: &Policy) -> Result<Prepared, Failure> {
    policy
        .entries
        .iter()
        .map(|entry| prepare_entry(policy, entry))
        .collect()
}

fn prepare_entry(policy: &Policy, entry: &Entry) -> Result<Vec<Detached>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Vec::new());
    }
    match &entry.kind {
        EntryKind::Bind {
            source,
            access,
            owner,
        } => Ok(vec![prepare_tree(policy, source, *access, *owner)?]),
        EntryKind::Overlay {
            lower,
            layer,
            owner,
        } => {
            let below = lower
                .iter()
                .map(|source| prepare_tree(policy, source, Access::ReadOnly, *owner));
            let above = prepare_tree(policy, layer, Access::ReadWrite, Ownership::AsItIs);
            below.chain([above]).collect()
        }
        EntryKind::Memory { .. } | EntryKind::Link { .. } | EntryKind::Directory => Ok(Vec::new()),
    }
}

fn prepare_tree(
    policy: &Policy,
    source: &Path,
    access: Access,
    owner: Ownership,
) -> Result<Detached, Failure> {
    let map = OwnerMap::new(owner, policy.identity).at(Step::Entry, text(source))?;
    match map {
        Some(map) => Detached::bind_mapped(source, access, &map),
        None => Detached::bind(source, access),
    }
    .at(Step::Entry, text(source))
}

/// Builds the new root and moves into it. The caller must be alone in its mount namespace.
pub(crate) fn enter(policy: &Policy, prepared: Prepared) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).at(Step::PrivateMounts, "/")?;
    let memory = Detached::memory(ROOT_CAP, 0o755).at(Step::Root, "tmpfs")?;
    let root = NewRoot::cover(&policy.stage, &memory).at(Step::Root, text(&policy.stage))?;
    for (entry, prepared) in policy.entries.iter().zip(&prepared) {
        place(&root, entry, prepared).at(Step::Entry, text(&entry.inside))?;
    }
    mount_memory(&root, "/tmp", policy.tmp, 0o1777).at(Step::Root, "/tmp")?;
    make_devices(&root, policy)?;
    mount_proc(&root)?;
    root.seal().at(Step::Root, "/")?;
    root.enter().at(Step::PivotRoot, "/")
}

fn place(root: &NewRoot, entry: &Entry, prepared: &[Detached]) -> io::Result<()> {
    let inside = entry.inside.as_path();
    match (&entry.kind, prepared) {
        (EntryKind::Bind { .. }, [prepared]) => root.mount(inside, prepared),
        (EntryKind::Bind { source, access, .. }, _) => {
            root.mount(inside, &Detached::bind(source, *access)?)
        }
        (EntryKind::Overlay { lower, layer, .. }, []) => {
            root.mount(inside, &Detached::overlay(lower, layer)?)
        }
        (EntryKind::Overlay { .. }, prepared) => mount_over(root, inside, prepared),
        (EntryKind::Memory { cap, mode }, _) => root.mount(inside, &Detached::memory(*cap, *mode)?),
        (EntryKind::Link { target }, _) => root.make_link(inside, target),
        (EntryKind::Directory, _) => root.make_directory(inside, 0o755),
    }
}

/// overlayfs takes its directories by path, so prepared trees are shown for that moment.
fn mount_over(root: &NewRoot, inside: &Path, trees: &[Detached]) -> io::Result<()> {
    let shown: Vec<PathBuf> = (0..trees.len())
        .map(|index| PathBuf::from(format!("/.tree-{index}")))
        .collect();
    for (tree, shown) in trees.iter().zip(&shown) {
        root.mount(shown, tree)?;
    }
    let mut lower: Vec<PathBuf> = shown.iter().map(|shown| root.outside(shown)).collect();
    let layer = lower.pop().ok_or(io::ErrorKind::InvalidInput)?;
    root.mount(inside, &Detached::overlay(&lower, &layer)?)?;
    for shown in &shown {
        root.remove_mount(shown)?;
    }
    Ok(())
}

fn mount_memory(root: &NewRoot, inside: &str, cap: MemoryCap, mode: u32) -> io::Result<()> {
    root.mount(Path::new(inside), &Detached::memory(cap, mode)?)
}

fn make_devices(root: &NewRoot, policy: &Policy) -> Result<(), Failure> {
    let cap = MemoryCap {
        bytes: 64 * 1024,
        inodes: 64,
    };
    mount_memory(root, "/dev", cap, 0o755).at(Step::Devices, "/dev")?;
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        let mounted = Detached::device(&path).and_then(|device| root.mount(&path, &device));
        mounted.at(Step::Devices, text(&path))?;
    }
    let terminals = Detached::terminals().at(Step::Devices, "devpts")?;
    root.mount(Path::new("/dev/pts"), &terminals)
        .at(Step::Devices, "/dev/pts")?;
    for (name, target) in DEVICE_LINKS {
        let path = Path::new("/dev").join(name);
        root.make_link(&path, Path::new(target))
            .at(Step::Devices, text(&path))?;
    }
    mount_memory(root, "/dev/shm", policy.shm, 0o1777).at(Step::Devices, "/dev/shm")?;
    root.make_read_only(Path::new("/dev"))
        .at(Step::Devices, "/dev")
}

fn mount_proc(root: &NewRoot) -> Result<(), Failure> {
    let proc = Detached::proc().at(Step::Proc, "proc")?;
    root.mount(Path::new("/proc"), &proc)
        .at(Step::Proc, "/proc")?;
    for path in MASKED_FILES.map(Path::new) {
        if path.exists() {
            let mask = Detached::device(Path::new("/dev/null")).at(Step::Proc, text(path))?;
            root.mount(path, &mask).at(Step::Proc, text(path))?;
        }
    }
    for path in MASKED_DIRECTORIES.map(Path::new) {
        if path.is_dir() {
            let cap = MemoryCap {
                bytes: 4096,
                inodes: 1,
            };
            let mask = Detached::memory(cap, 0o555).at(Step::Proc, text(path))?;
            root.mount(path, &mask).at(Step::Proc, text(path))?;
        }
    }
    Ok(())
}

/// Makes the kernel's settings unwritable; done last, because one of them is written before.
pub(crate) fn seal_settings() -> Result<(), Failure> {
    for path in READ_ONLY.map(Path::new) {
        if path.is_dir() {
            mounts::make_read_only(path).at(Step::Proc, text(path))?;
        }
    }
    Ok(())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
