//! Settling apt for a root that has no capabilities.
//!
//! As root, apt downloads as the user `_apt`, and keeps what is not complete in directories of that
//! user. Inside, nobody can become another user, and root cannot enter those directories. The native
//! sandbox has the same setting for its images.

use std::{
    io::{self, Write as _},
    time::{SystemTime, UNIX_EPOCH},
};

use zareba_runtime::RuntimeError;

use crate::{
    archive::{Packing, Pieces},
    engine::Engine,
    make::cannot_start,
};

/// An image without it has no apt.
const SETTINGS: &str = "/etc/apt/apt.conf.d";

const SETTING: (&str, &str) = (
    "etc/apt/apt.conf.d/99zareba",
    "APT::Sandbox::User \"root\";\n",
);

/// Each level is written out: a link of the image in its place would lead elsewhere.
const DIRECTORIES: [(&str, u32); 12] = [
    ("etc", 0o755),
    ("etc/apt", 0o755),
    ("etc/apt/apt.conf.d", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/cache/apt", 0o755),
    ("var/cache/apt/archives", 0o755),
    ("var/cache/apt/archives/partial", 0o700),
    ("var/lib", 0o755),
    ("var/lib/apt", 0o755),
    ("var/lib/apt/lists", 0o755),
    ("var/lib/apt/lists/partial", 0o700),
];

/// Writes the setting into a container that was never started, and makes the directories root's.
pub(crate) async fn settle(engine: &Engine, container: &str) -> Result<(), RuntimeError> {
    let has_apt = engine.has_file(container, SETTINGS).await;
    if !has_apt.map_err(cannot_start)? {
        return Ok(());
    }
    let archive = Packing::begin(pack);
    archive.unpack_into(engine, container, "/").await
}

fn pack(pieces: Pieces) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let header = |kind, mode, size: usize| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(now);
        header.set_size(size as u64);
        header
    };
    let mut archive = tar::Builder::new(pieces);
    for (path, mode) in DIRECTORIES {
        let mut header = header(tar::EntryType::Directory, mode, 0);
        archive.append_data(&mut header, path, io::empty())?;
    }
    let (path, text) = SETTING;
    let mut header = header(tar::EntryType::Regular, 0o644, text.len());
    archive.append_data(&mut header, path, text.as_bytes())?;
    archive.into_inner()?.flush()
}
