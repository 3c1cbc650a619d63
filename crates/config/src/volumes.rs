//! OpenHands' rule that `sandbox.volumes` decides about the workspace.
//!
//! Its users give the workspace as a mount onto `/workspace`, so that mount is where a runtime on
//! this machine works; mounts without one mean that no host directory is the workspace.

use std::path::PathBuf;

/// The mount target that stands for the workspace.
const WORKSPACE: &str = "/workspace";

/// The single mounts of the setting; empty when it is.
pub(crate) fn split(volumes: &str) -> impl Iterator<Item = &str> {
    volumes.split(',').filter(move |_| !volumes.is_empty())
}

/// The host directory that is mounted as the workspace, if one is.
pub(crate) fn workspace(volumes: &str) -> Option<PathBuf> {
    split(volumes).find_map(|mount| {
        let mut parts = mount.split(':');
        let host = parts.next()?;
        (parts.next() == Some(WORKSPACE)).then(|| PathBuf::from(host))
    })
}
