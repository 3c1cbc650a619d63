//! The directory that an agent works in, and the names in it that other programs of this machine
//! act on.
//!
//! Names that other programs act on are guarded in a workspace that can be changed, by mounts of
//! themselves (`zareba_runtime::guarded`, NS-6).

use std::{fs::File, io, path::Path};

use zareba_confine::{Access, Entry, EntryKind, Layer, Lower, Overlay};
use zareba_runtime::guarded::{GuardedAccess, GuardedPath, Guarding, guard};

use super::{Request, WORKSPACE, WorkspaceMode, entry, owned_alike, places::Places};

/// What an operator can do where a name cannot be guarded.
const REMEDY: &str =
    "leave it out of `native.guarded_names`, or choose a workspace that is copied on write";

/// The workspace, what is kept from being changed in it, and the lock that keeps it so.
pub(super) fn entries(
    places: &Places,
    request: &Request<'_>,
) -> io::Result<(Vec<Entry>, Option<File>)> {
    let mut entries = Vec::new();
    let mut lock = None;
    let kind = match (request.workspace, request.mode) {
        // Nothing is below it, so it needs no layer.
        (None, _) => places.own("workspace")?,
        (Some(source), WorkspaceMode::CopyOnWrite) => overlay(
            places,
            Lower {
                path: source.to_owned(),
                owner: owned_alike(source)?,
                is_direct: true,
            },
        )?,
        (Some(source), WorkspaceMode::ReadOnly) => read_only(places, source)?,
        (Some(source), WorkspaceMode::ReadWrite) => {
            let guarded = guard(&Guarding {
                workspace: source,
                names: request.guarded,
                private: request.directory,
                remedy: REMEDY,
            })?;
            lock = guarded.lock;
            entries = guarded.paths.iter().map(again).collect();
            bind(source, Access::ReadWrite)?
        }
    };
    entries.insert(0, entry(WORKSPACE, kind));
    Ok((entries, lock))
}

fn overlay(places: &Places, lower: Lower) -> io::Result<EntryKind> {
    Ok(EntryKind::Overlay(Overlay {
        lower: vec![lower],
        layer: Some(Layer::Directory(places.layer("workspace")?)),
        own: Vec::new(),
    }))
}

/// Through an overlay, even one that nothing can be changed in, sockets of the machine have nobody
/// behind them (NS-4). It needs something to lie on.
fn read_only(places: &Places, source: &Path) -> io::Result<EntryKind> {
    let source = Lower {
        path: source.to_owned(),
        owner: owned_alike(source)?,
        is_direct: true,
    };
    Ok(EntryKind::Overlay(Overlay {
        lower: vec![source, places.empty()?],
        layer: None,
        own: Vec::new(),
    }))
}

fn bind(source: &Path, access: Access) -> io::Result<EntryKind> {
    Ok(EntryKind::Bind {
        source: source.to_owned(),
        access,
        owner: owned_alike(source)?,
        is_direct: true,
    })
}

fn again(path: &GuardedPath) -> Entry {
    let access = match path.access {
        GuardedAccess::ReadOnly => Access::ReadOnly,
        GuardedAccess::ReadWrite => Access::ReadWrite,
    };
    let inside = Path::new(WORKSPACE).join(&path.below);
    entry(inside, EntryKind::Again { access })
}
