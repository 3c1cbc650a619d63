//! Putting the new root together, and moving into it.

use std::{io, path::Path};

use rustix::{
    fs::Mode,
    mount::{MountPropagationFlags, mount_change},
};

use super::{
    devices,
    prepare::{Prepared, text},
    processes,
    store::Store,
};
use crate::{
    mounts::{Detached, NewRoot, Outside},
    owner_map::Owners,
    policy::{Entry, EntryKind, Policy, Root},
    step::{AtStep as _, Failure, Step},
};

/// Others may look, and change nothing.
const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// Builds the new root and moves into it. The caller must be alone in its mount namespace.
pub(crate) fn enter(policy: &Policy, prepared: Prepared) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).at(Step::PrivateMounts, "/")?;
    // Whatever mask we were started with: what is made here and by the program can be read by all.
    let _ = rustix::process::umask(MASK);
    let stage = policy.stage.as_path();
    let store = Store::open(stage, policy.memory).at(Step::Root, text(stage))?;
    let base = match &policy.root {
        Root::Memory => store.make(0o755).at(Step::Root, "tmpfs")?,
        Root::Overlay(overlay) => store
            .merge(overlay, &prepared.root)
            .at(Step::Root, "overlay")?,
    };
    let root = NewRoot::cover(stage, &base).at(Step::Root, text(stage))?;
    for (entry, prepared) in policy.entries.iter().zip(&prepared.entries) {
        place(&store, &root, entry, prepared).at(Step::Entry, text(&entry.inside))?;
    }
    let tmp = store.make(0o1777);
    tmp.and_then(|tmp| root.mount(Path::new("/tmp"), &tmp))
        .at(Step::Root, "/tmp")?;
    devices::make(&root, &store, prepared.devices.as_ref())?;
    processes::mount(&root, &store)?;
    if policy.root == Root::Memory {
        root.seal().at(Step::Root, "/")?;
    }
    root.enter().at(Step::PivotRoot, "/")
}

fn place(store: &Store, root: &NewRoot, entry: &Entry, prepared: &[Detached]) -> io::Result<()> {
    let inside = entry.inside.as_path();
    match (&entry.kind, prepared) {
        (EntryKind::Bind { .. }, [prepared]) => root.mount(inside, prepared),
        (
            EntryKind::Bind {
                source,
                access,
                is_direct,
                ..
            },
            _,
        ) => {
            let source = Outside::new(source, *is_direct);
            root.mount(inside, &Detached::bind(source, *access, Owners::AsTheyAre)?)
        }
        (EntryKind::Overlay(overlay), prepared) => {
            root.mount(inside, &store.merge(overlay, prepared)?)
        }
        (EntryKind::Again { access }, _) => root.mount_again(inside, *access),
        (EntryKind::Memory { mode }, _) => root.mount(inside, &store.make(*mode)?),
        (EntryKind::Link { target }, _) => root.make_link(inside, target),
        (EntryKind::Directory { mode }, _) => root.make_directory(inside, *mode),
    }
}
