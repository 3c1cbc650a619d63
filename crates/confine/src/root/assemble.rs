//! Putting the new root together, and moving into it.

use std::{
    cell::Cell,
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::mount::{MountPropagationFlags, mount_change};

use super::{
    devices,
    prepare::{Prepared, text},
    processes,
};
use crate::{
    mounts::{Detached, NewRoot},
    policy::{Entry, EntryKind, Layer, MemoryCap, Overlay, OwnFile, Policy, Root},
    step::{AtStep as _, Failure, Step},
};

/// A root in memory holds nothing but directories and links.
const ROOT_CAP: MemoryCap = MemoryCap {
    bytes: 1024 * 1024,
    inodes: 4096,
};

/// What files of a sandbox's own may take together.
const OWN_CAP: MemoryCap = MemoryCap {
    bytes: 1024 * 1024,
    inodes: 64,
};

/// Builds the new root and moves into it. The caller must be alone in its mount namespace.
pub(crate) fn enter(policy: &Policy, prepared: Prepared) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).at(Step::PrivateMounts, "/")?;
    let memory = || Detached::memory(ROOT_CAP, 0o755).at(Step::Root, "tmpfs");
    let stage = policy.stage.as_path();
    let window = Window {
        place: NewRoot::cover(stage, &memory()?).at(Step::Root, text(stage))?,
        shown: Cell::new(0),
    };
    let base = match &policy.root {
        Root::Memory => memory()?,
        Root::Overlay(overlay) => window
            .merge(overlay, &prepared.root)
            .at(Step::Root, "overlay")?,
    };
    let root = NewRoot::cover(stage, &base).at(Step::Root, text(stage))?;
    for (entry, prepared) in policy.entries.iter().zip(&prepared.entries) {
        place(&window, &root, entry, prepared).at(Step::Entry, text(&entry.inside))?;
    }
    let tmp =
        Detached::memory(policy.tmp, 0o1777).and_then(|tmp| root.mount(Path::new("/tmp"), &tmp));
    tmp.at(Step::Root, "/tmp")?;
    devices::make(&root, policy.shm)?;
    processes::mount(&root)?;
    if policy.root == Root::Memory {
        root.seal().at(Step::Root, "/")?;
    }
    root.enter().at(Step::PivotRoot, "/")
}

fn place(window: &Window, root: &NewRoot, entry: &Entry, prepared: &[Detached]) -> io::Result<()> {
    let inside = entry.inside.as_path();
    match (&entry.kind, prepared) {
        (EntryKind::Bind { .. }, [prepared]) => root.mount(inside, prepared),
        (EntryKind::Bind { source, access, .. }, _) => {
            root.mount(inside, &Detached::bind(source, *access, None)?)
        }
        (EntryKind::Overlay(overlay), prepared) => {
            root.mount(inside, &window.merge(overlay, prepared)?)
        }
        (EntryKind::Again { access }, _) => root.mount_again(inside, *access),
        (EntryKind::Memory { cap, mode }, _) => root.mount(inside, &Detached::memory(*cap, *mode)?),
        (EntryKind::Link { target }, _) => root.make_link(inside, target),
        (EntryKind::Directory, _) => root.make_directory(inside, 0o755),
    }
}

/// Where trees that have no name are shown to overlayfs, which takes its directories by path. It
/// lies below the new root and goes with the old one: taking off each tree by itself would cost
/// more than mounting it.
struct Window {
    place: NewRoot,
    /// How many were.
    shown: Cell<usize>,
}

impl Window {
    /// Makes an overlay from its directories, or from what was prepared of them.
    fn merge(&self, overlay: &Overlay, prepared: &[Detached]) -> io::Result<Detached> {
        if overlay.lower.is_empty() || overlay.lower.len() > Overlay::LOWER_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut lower = Vec::new();
        if overlay.layer.is_none() && !overlay.own.is_empty() {
            let own = self.show(&Detached::memory(OWN_CAP, 0o755)?)?;
            write_own(&own, &overlay.own)?;
            lower.push(own);
        }
        for tree in prepared {
            lower.push(self.show(tree)?);
        }
        if prepared.is_empty() {
            lower.extend(overlay.lower.iter().map(|lower| lower.path.clone()));
        }
        let layer = match &overlay.layer {
            None => None,
            Some(Layer::Memory(cap)) => Some(self.make_layer(*cap, &overlay.own)?),
            Some(Layer::Directory(_)) if !overlay.own.is_empty() => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Some(Layer::Directory(path)) if prepared.is_empty() => Some(path.clone()),
            // Prepared behind what is below.
            Some(Layer::Directory(_)) => lower.pop(),
        };
        Detached::overlay(&lower, layer.as_deref())
    }

    /// A path to a tree that has none.
    fn show(&self, tree: &Detached) -> io::Result<PathBuf> {
        let place = PathBuf::from(format!("/{}", self.shown.get()));
        self.shown.set(self.shown.get() + 1);
        self.place.mount(&place, tree)?;
        Ok(self.place.outside(&place))
    }

    fn make_layer(&self, cap: MemoryCap, own: &[OwnFile]) -> io::Result<PathBuf> {
        let layer = self.show(&Detached::memory(cap, 0o755)?)?;
        for name in ["upper", "work"] {
            std::fs::create_dir(layer.join(name))?;
        }
        write_own(&layer.join("upper"), own)?;
        Ok(layer)
    }
}

/// Whatever mask we were started with, everyone inside can read them.
fn write_own(directory: &Path, files: &[OwnFile]) -> io::Result<()> {
    for OwnFile { name, text } in files {
        let path = directory.join(name);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    }
    Ok(())
}
