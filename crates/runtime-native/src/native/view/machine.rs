//! The machine's own tools, as a sandbox sees them.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use zareba_confine::{Entry, EntryKind, Layer, Lower, Overlay, OwnFile, Ownership, Root};

use super::{
    Request, Resolver, Seen, SystemMode, entry, generated, memory, owned_alike, places::Places,
    skeleton,
};

/// Directories with programs, libraries and their settings. A later one may be in an earlier one.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/usr/local",
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
];

/// Those whose changes are kept in memory: there are few, and a start that makes no directories
/// for them on the disk is faster.
const IN_MEMORY: [&str; 2] = ["/etc", "/opt"];

/// Everything of this machine that exists inside.
pub(super) fn see(places: &Places, request: &Request<'_>, mode: SystemMode) -> io::Result<Seen> {
    let mut found = Vec::new();
    for path in SYSTEM {
        found.extend(Found::at(path)?);
    }
    let directories: Vec<&str> = found.iter().filter_map(Found::directory).collect();
    let store = places.shared("skeleton")?;
    let skeleton = skeleton::lease(&store, &directories, request.identity)?;
    let mut entries = Vec::new();
    for found in found {
        entries.push(found.entry(places, &skeleton.path, mode, request.resolver)?);
    }
    entries.push(memory("/var", 0o755));
    entries.push(memory("/var/tmp", 0o1777));
    Ok(Seen {
        root: Root::Memory,
        entries,
        lease: Some(skeleton.lease),
    })
}

/// What is at the place of a system directory.
enum Found {
    Directory(&'static str),
    /// As on a system whose programs are all below `/usr`.
    Link(&'static str, PathBuf),
}

impl Found {
    fn at(path: &'static str) -> io::Result<Option<Self>> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if found.is_symlink() {
            // Inside another of them, it is shown by that one.
            let is_top = Path::new(path).parent() == Some(Path::new("/"));
            return Ok(is_top.then_some(Self::Link(path, fs::read_link(path)?)));
        }
        // An overlay shows one file system, so another one within it needs an overlay as well.
        let is_part_of_another = Path::new(path)
            .parent()
            .filter(|parent| *parent != Path::new("/"))
            .and_then(|parent| fs::metadata(parent).ok())
            .is_some_and(|parent| parent.dev() == found.dev());
        let is_shown = found.is_dir() && !is_part_of_another;
        Ok(is_shown.then_some(Self::Directory(path)))
    }

    fn directory(&self) -> Option<&'static str> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Link(..) => None,
        }
    }

    /// The directory itself lies below a skeleton, and that below what only this sandbox has.
    fn entry(
        self,
        places: &Places,
        skeleton: &Path,
        mode: SystemMode,
        resolver: Resolver<'_>,
    ) -> io::Result<Entry> {
        let path = match self {
            Self::Link(path, target) => return Ok(entry(path, EntryKind::Link { target })),
            Self::Directory(path) => path,
        };
        let name = skeleton::name_of(path);
        let shape = skeleton.join(&name);
        let lower = vec![
            Lower {
                owner: owned_alike(&shape)?,
                path: shape,
            },
            Lower {
                path: path.into(),
                owner: Ownership::AsItIs,
            },
        ];
        let own = match path {
            "/etc" => generated::own(resolver)?
                .map(|(name, text)| OwnFile {
                    name: name.to_owned(),
                    text,
                })
                .into(),
            _ => Vec::new(),
        };
        let layer = match mode {
            SystemMode::CopyOnWrite if IN_MEMORY.contains(&path) => Some(Layer::Memory),
            SystemMode::CopyOnWrite => Some(Layer::Directory(places.layer(&name)?)),
            SystemMode::ReadOnly => None,
        };
        Ok(entry(
            path,
            EntryKind::Overlay(Overlay { lower, layer, own }),
        ))
    }
}
