//! Trees that are made before the sandbox's own rights take effect.

use std::{fs::File, os::fd::AsFd as _, path::Path};

use super::devices;
use crate::{
    mounts::{Detached, Outside},
    owner_map::OwnerMaps,
    policy::{Access, EntryKind, Layer, Overlay, Ownership, Policy, Root},
    privilege::is_root_of_machine,
    step::{AtStep as _, Failure, Step},
};

/// What was made, for the root and for each entry. Nothing when we are not the machine's root:
/// others make it all inside, where they may.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What is below the root if that is an overlay, and last its layer if it has one.
    pub(super) root: Vec<Detached>,
    /// For each entry: a bind, or the same of an overlay.
    pub(super) entries: Vec<Vec<Detached>>,
    /// `/dev`, as far as it is the same in every sandbox.
    pub(super) devices: Option<Detached>,
}

impl Prepared {
    /// Translates the owners of those trees that are translated as the sandbox's own are, now that
    /// there is a namespace of this process's.
    pub(crate) fn translate(&self, pid: i32) -> Result<(), Failure> {
        let trees = self.root.iter().chain(self.entries.iter().flatten());
        let mut namespace = None;
        for tree in trees {
            let Some(source) = tree.untranslated() else {
                continue;
            };
            let translated = match &namespace {
                Some(namespace) => Ok(namespace),
                None => File::open(format!("/proc/{pid}/ns/user"))
                    .map(|opened| &*namespace.insert(opened)),
            }
            .and_then(|namespace| tree.translate(namespace.as_fd()));
            translated.at(Step::Entry, text(source))?;
        }
        Ok(())
    }
}

/// Makes the trees that the sandbox's own user could not reach by name.
pub(crate) fn prepare(policy: &Policy) -> Result<Prepared, Failure> {
    if !is_root_of_machine() {
        return Ok(Prepared {
            root: Vec::new(),
            entries: policy.entries.iter().map(|_| Vec::new()).collect(),
            devices: None,
        });
    }
    let mut maps = OwnerMaps::new(policy.identity);
    let root = match &policy.root {
        Root::Memory => Vec::new(),
        Root::Overlay(overlay) => prepare_overlay(&mut maps, overlay)?,
    };
    let entries = policy
        .entries
        .iter()
        .map(|entry| prepare_entry(&mut maps, &entry.kind))
        .collect::<Result<_, _>>()?;
    Ok(Prepared {
        root,
        entries,
        devices: devices::copy_ready(),
    })
}

fn prepare_entry(maps: &mut OwnerMaps, kind: &EntryKind) -> Result<Vec<Detached>, Failure> {
    match kind {
        EntryKind::Bind {
            source,
            access,
            owner,
            is_direct,
        } => {
            let owners = maps.get(*owner).at(Step::Entry, text(source))?;
            let outside = Outside::new(source, *is_direct);
            let tree = Detached::bind(outside, *access, owners).at(Step::Entry, text(source))?;
            Ok(vec![tree])
        }
        EntryKind::Overlay(overlay) => prepare_overlay(maps, overlay),
        EntryKind::Again { .. }
        | EntryKind::Memory { .. }
        | EntryKind::Link { .. }
        | EntryKind::Directory { .. } => Ok(Vec::new()),
    }
}

fn prepare_overlay(maps: &mut OwnerMaps, overlay: &Overlay) -> Result<Vec<Detached>, Failure> {
    let mut prepare = |source: Outside<'_>, access, owner| {
        let owners = maps.get(owner).at(Step::Entry, text(source.path))?;
        Detached::bind_one(source, access, owners).at(Step::Entry, text(source.path))
    };
    let mut trees = Vec::new();
    for lower in &overlay.lower {
        let source = Outside::new(&lower.path, lower.is_direct);
        trees.push(prepare(source, Access::ReadOnly, lower.owner)?);
    }
    if let Some(Layer::Directory(layer)) = &overlay.layer {
        let source = Outside::new(layer, false);
        trees.push(prepare(source, Access::ReadWrite, Ownership::AsItIs)?);
    }
    Ok(trees)
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
