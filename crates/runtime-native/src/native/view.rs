//! What a sandbox sees: the tools of this machine, an identity, a home and a workspace.
//!
//! Only what is listed here exists inside. Homes, `/run`, `/var`, `/sys`, sockets, keys and our
//! own state are not hidden: they are not there.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use zareba_confine::{Access, Entry, EntryKind, Identity, MemoryCap, Ownership};

/// The name of the sandbox's user.
pub(crate) const USER: &str = "agent";

/// Where it lives.
pub(crate) const HOME: &str = "/home/agent";

/// Where it works.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Directories with programs, libraries and their settings.
const SYSTEM: [&str; 9] = [
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
];

/// What a home may take.
const HOME_CAP: MemoryCap = MemoryCap {
    bytes: 1024 * 1024 * 1024,
    inodes: 100_000,
};

/// What `/var` and `/run` may take; programs expect them to be there.
const SMALL_CAP: MemoryCap = MemoryCap {
    bytes: 64 * 1024 * 1024,
    inodes: 10_000,
};

/// How a directory of this machine appears as the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// Changes stay in the sandbox, and go with it.
    CopyOnWrite,
    /// Changes reach the directory itself.
    ReadWrite,
    /// There are none.
    ReadOnly,
}

/// The directories of one sandbox outside.
#[derive(Debug)]
pub(crate) struct Places {
    /// Where its generated files are.
    pub(crate) files: PathBuf,
    /// Where changes to the workspace go.
    pub(crate) layer: PathBuf,
    /// An empty directory.
    pub(crate) empty: PathBuf,
}

/// Everything that exists inside.
pub(crate) fn entries(
    places: &Places,
    identity: Identity,
    workspace: Option<&Path>,
    mode: WorkspaceMode,
) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for path in SYSTEM.map(Path::new) {
        entries.extend(system(path)?);
    }
    for (name, text) in identity_files(identity) {
        let inside = Path::new("/etc").join(name);
        // A file can be covered only where there is one.
        if fs::symlink_metadata(&inside).is_ok_and(|found| found.is_file()) {
            let source = places.files.join(name);
            fs::write(&source, text)?;
            // Whatever mask we were started with, it must be readable inside.
            fs::set_permissions(&source, fs::Permissions::from_mode(0o644))?;
            entries.push(entry(&inside, read_only(&source)));
        }
    }
    for path in ["/var", "/run"] {
        entries.push(entry(
            path,
            EntryKind::Memory {
                cap: SMALL_CAP,
                mode: 0o755,
            },
        ));
    }
    entries.push(entry(
        "/var/tmp",
        EntryKind::Memory {
            cap: SMALL_CAP,
            mode: 0o1777,
        },
    ));
    entries.push(entry(
        HOME,
        EntryKind::Memory {
            cap: HOME_CAP,
            mode: 0o700,
        },
    ));
    entries.push(entry(WORKSPACE, workspace_kind(places, workspace, mode)?));
    Ok(entries)
}

fn entry(inside: impl AsRef<Path>, kind: EntryKind) -> Entry {
    Entry {
        inside: inside.as_ref().to_owned(),
        kind,
    }
}

fn read_only(source: &Path) -> EntryKind {
    EntryKind::Bind {
        source: source.to_owned(),
        access: Access::ReadOnly,
        owner: Ownership::AsItIs,
    }
}

/// A system directory, or the link that it is on a merged system.
fn system(path: &Path) -> io::Result<Option<Entry>> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if found.is_symlink() {
        return Ok(Some(entry(
            path,
            EntryKind::Link {
                target: fs::read_link(path)?,
            },
        )));
    }
    Ok(found.is_dir().then(|| entry(path, read_only(path))))
}

/// Who is who inside, in the words of the user database.
fn identity_files(identity: Identity) -> [(&'static str, String); 5] {
    let Identity {
        uid_inside: uid,
        gid_inside: gid,
        ..
    } = identity;
    [
        (
            "passwd",
            format!(
                "root:x:0:0:root:/root:/bin/sh\n{USER}:x:{uid}:{gid}::{HOME}:/bin/bash\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        (
            "group",
            format!("root:x:0:\n{USER}:x:{gid}:\nnogroup:x:65534:\n"),
        ),
        (
            "hosts",
            "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n".to_owned(),
        ),
        ("hostname", "sandbox\n".to_owned()),
        ("resolv.conf", "# This sandbox has no network.\n".to_owned()),
    ]
}

fn workspace_kind(
    places: &Places,
    workspace: Option<&Path>,
    mode: WorkspaceMode,
) -> io::Result<EntryKind> {
    let Some(source) = workspace else {
        return overlay(places, &places.empty);
    };
    let access = match mode {
        WorkspaceMode::CopyOnWrite => return overlay(places, source),
        WorkspaceMode::ReadWrite => Access::ReadWrite,
        WorkspaceMode::ReadOnly => Access::ReadOnly,
    };
    Ok(EntryKind::Bind {
        source: source.to_owned(),
        access,
        owner: owner_of(source)?,
    })
}

fn overlay(places: &Places, lower: &Path) -> io::Result<EntryKind> {
    Ok(EntryKind::Overlay {
        lower: vec![lower.to_owned()],
        layer: places.layer.clone(),
        owner: owner_of(lower)?,
    })
}

/// The workspace is the agent's, whoever's it is outside. Without root that is ourselves anyway.
fn owner_of(source: &Path) -> io::Result<Ownership> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(source)?;
    Ok(Ownership::Mapped {
        uid: found.uid(),
        gid: found.gid(),
    })
}
