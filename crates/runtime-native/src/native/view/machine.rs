//! The machine's own tools, as a sandbox sees them.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use zareba_confine::{
    Access, Entry, EntryKind, Identity, Layer, Lower, Overlay, OwnFile, Ownership, Root,
    is_root_of_machine,
};

use super::{
    Request, Seen, SystemMode,
    divided::{self, Mounted},
    entry, generated, home, memory, owned_alike,
    places::Places,
    skeleton::{self, Fact, Kind, Skeleton, Top},
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

/// Where such a directory, or one in it that counts by itself, is added, removed or replaced. `/usr`
/// is looked at anyway.
const AROUND: [&str; 2] = ["/", "/usr/local"];

/// Those whose changes are kept in memory: there are few, and a start that makes no directories
/// for them on the disk is faster.
const IN_MEMORY: [&str; 2] = ["/etc", "/opt"];

/// What was found before this process was copied, if it is a copy.
static FOUND_BEFORE: OnceLock<Finding> = OnceLock::new();

/// Looks at the machine ahead of those who are copies of this process.
pub(super) fn look_ahead() {
    if let Ok(finding) = Finding::now() {
        let _ = FOUND_BEFORE.set(finding);
    }
}

/// What the skeletons of a state directory are in.
const SKELETONS: &str = "skeleton";

/// Makes the skeleton that the next sandboxes of a state directory need, if it is not there.
pub(super) fn lay_ground(state: &Path, identity: Identity) -> io::Result<()> {
    Finding::now()?
        .skeleton(&state.join(SKELETONS), identity)
        .map(drop)
}

/// Everything of this machine that exists inside.
pub(super) fn see(places: &Places, request: &Request<'_>, mode: SystemMode) -> io::Result<Seen> {
    let found_now;
    let finding = match FOUND_BEFORE.get().filter(|finding| finding.still_holds()) {
        Some(finding) => finding,
        None => {
            found_now = Finding::now()?;
            &found_now
        }
    };
    let skeleton = finding.skeleton(&places.shared(SKELETONS)?, request.identity)?;
    let mut entries = Vec::new();
    for found in &finding.found {
        entries.push(found.entry(places, &skeleton.path, mode, request)?);
    }
    entries.push(memory("/var", 0o755));
    entries.push(entry("/var/tmp", EntryKind::Directory { mode: 0o1777 }));
    Ok(Seen {
        root: Root::Memory,
        entries,
        lease: Some(skeleton.lease),
        workspace_lock: None,
    })
}

/// The system directories, and what they were like then.
#[derive(Debug)]
struct Finding {
    found: Vec<Found>,
    facts: Vec<Fact>,
    around: Vec<Fact>,
    mounted: Vec<Mounted>,
}

impl Finding {
    fn now() -> io::Result<Self> {
        // First of all: what changes meanwhile is noticed the next time.
        let around = AROUND
            .iter()
            .filter_map(|path| Fact::of(Path::new(path)).ok())
            .collect();
        let mut finding = Self {
            found: Vec::new(),
            facts: Vec::new(),
            around,
            mounted: mounted()?,
        };
        for path in SYSTEM {
            // What is part of a directory that is shown in parts was found with it.
            let is_part = |found: &Found| match found {
                Found::Directory(top) => {
                    top.kind != Kind::Mirrored && Path::new(path).starts_with(&top.path)
                }
                Found::Link(..) => false,
            };
            if !finding.found.iter().any(is_part) {
                finding.found.extend(Found::at(path, &finding.mounted)?);
            }
        }
        finding.facts = skeleton::facts(&finding.tops())?;
        Ok(finding)
    }

    /// The skeleton of what was found, from a directory that holds skeletons.
    fn skeleton(&self, store: &Path, identity: Identity) -> io::Result<Skeleton> {
        skeleton::lease(store, &self.tops(), &self.facts, identity)
    }

    fn tops(&self) -> Vec<Top> {
        self.found.iter().filter_map(Found::top).cloned().collect()
    }

    fn still_holds(&self) -> bool {
        let mut facts = self.around.iter().chain(&self.facts);
        facts.all(Fact::still_holds) && mounted().is_ok_and(|now| now == self.mounted)
    }
}

/// What is mounted in system directories. Root's sandboxes may leave it out, and others may not.
fn mounted() -> io::Result<Vec<Mounted>> {
    match is_root_of_machine() {
        true => Ok(Vec::new()),
        false => divided::mounted_in(&SYSTEM),
    }
}

/// What is at the place of a system directory.
#[derive(Debug)]
enum Found {
    Directory(Top),
    /// As on a system whose programs are all below `/usr`.
    Link(&'static str, PathBuf),
}

impl Found {
    fn at(path: &'static str, mounted: &[Mounted]) -> io::Result<Vec<Self>> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        if found.is_symlink() {
            // Inside another of them, it is shown by that one.
            let is_top = Path::new(path).parent() == Some(Path::new("/"));
            let link = Self::Link(path, fs::read_link(path)?);
            return Ok(is_top.then_some(link).into_iter().collect());
        }
        // An overlay shows one file system, so another one within it needs an overlay as well.
        let is_part_of_another = Path::new(path)
            .parent()
            .filter(|parent| *parent != Path::new("/"))
            .and_then(|parent| fs::metadata(parent).ok())
            .is_some_and(|parent| parent.dev() == found.dev());
        let is_shown = found.is_dir() && !is_part_of_another;
        if !is_shown {
            return Ok(Vec::new());
        }
        let tops = divided::divide(Path::new(path), mounted)?;
        Ok(tops.into_iter().map(Self::Directory).collect())
    }

    fn top(&self) -> Option<&Top> {
        match self {
            Self::Directory(top) => Some(top),
            Self::Link(..) => None,
        }
    }

    /// The directory itself lies below a skeleton, and that below what only this sandbox has.
    fn entry(
        &self,
        places: &Places,
        skeleton: &Path,
        mode: SystemMode,
        request: &Request<'_>,
    ) -> io::Result<Entry> {
        let Top { path, kind } = match self {
            Self::Link(path, target) => {
                let target = target.clone();
                return Ok(entry(path, EntryKind::Link { target }));
            }
            Self::Directory(top) => top,
        };
        let name = skeleton::name_of(path);
        let shape = skeleton.join(&name);
        let of_the_machine = match kind {
            Kind::Bound => {
                let bound = EntryKind::Bind {
                    source: path.clone(),
                    access: Access::ReadOnly,
                    owner: Ownership::AsItIs,
                    is_direct: false,
                };
                return Ok(entry(path, bound));
            }
            Kind::Mirrored => Lower {
                path: path.clone(),
                owner: Ownership::AsItIs,
                is_direct: false,
            },
            // All that is shown is in the skeleton, or is mounted on it.
            Kind::Divided | Kind::Copied => places.empty()?,
        };
        let lower = vec![
            Lower {
                owner: owned_alike(&shape)?,
                path: shape,
                is_direct: false,
            },
            of_the_machine,
        ];
        let own = match path.to_str() {
            Some("/etc") => generated::own(request.resolver)?
                .into_iter()
                .chain(request.tools.and_then(home::profile))
                .map(|(name, text)| OwnFile {
                    name: name.to_owned(),
                    text,
                })
                .collect(),
            _ => Vec::new(),
        };
        let layer = match mode {
            SystemMode::CopyOnWrite
                if IN_MEMORY.iter().any(|it| Path::new(it) == path.as_path()) =>
            {
                Some(Layer::Memory)
            }
            SystemMode::CopyOnWrite => Some(Layer::Directory(places.layer(&name)?)),
            SystemMode::ReadOnly => None,
        };
        Ok(entry(
            path,
            EntryKind::Overlay(Overlay { lower, layer, own }),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_holds_as_long_as_each_of_its_facts() {
        let place = tempfile::tempdir().unwrap();
        for changed in ["facts", "around"] {
            let mut finding = Finding::now().unwrap();
            assert!(finding.still_holds());
            let tops = finding.tops();
            let has = |path: &str| tops.iter().any(|top| top.path == Path::new(path));
            assert!(has("/usr") && has("/etc"), "{tops:?}");
            let fact = Fact::of(place.path()).unwrap();
            match changed {
                "facts" => finding.facts.push(fact),
                _ => finding.around.push(fact),
            }
            assert!(finding.still_holds());
            fs::write(place.path().join(changed), "").unwrap();
            assert!(!finding.still_holds(), "{changed}");
        }
    }
}
