//! Directories in the shape of the machine's, that make those writable inside.
//!
//! In an overlay, a directory that several layers have takes its owner and mode from the topmost
//! of them. Files of the machine's root are nobody's inside, and so are its directories, in which
//! the sandbox's user then could not make anything. A layer of empty directories that are that
//! user's changes just this: files can be added there, removed, and replaced by others, and the
//! machine's own still cannot be written to, nor read by whoever cannot read them outside: the
//! kernel asks each layer for itself, with the rights of the sandbox's user.
//!
//! Beside that it holds what is the same in `/etc` for every sandbox: the files that say who it
//! is, and marks that hide secrets.
//!
//! All sandboxes of a state directory share one skeleton, under `STATE/skeleton/KEY`. It is made
//! by whoever needs it first, under a lock and with a rename at the end. The key says what the
//! machine's directories were like; whoever makes a new one removes those that nobody holds.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use zareba_confine::Identity;

use super::{generated, secrets};

/// Changes with what a skeleton is made like.
const GENERATION: u32 = 2;

/// More directories than this are not mirrored, and so cannot be added to.
const DIRECTORIES_MAX: usize = 2_000;

/// A skeleton can be removed while it is being asked for, and then there is a newer one.
const ATTEMPTS_MAX: usize = 8;

/// Which is being made; the rename at the end gives it its name.
const UNFINISHED: &str = "unfinished";

/// What is mirrored of one directory.
struct Mirror {
    top: &'static str,
    /// How many levels below it.
    levels: usize,
    /// How many of these are looked at, at every start, to know whether something has changed. A
    /// change further down is noticed with the next one further up; until then a directory that
    /// was added there can be read inside, and not added to.
    watched: usize,
}

/// Where programs are put that no package of the machine brings, everything is; elsewhere, what
/// such programs commonly add to. All other tops are mirrored by themselves.
const MIRRORS: [Mirror; 4] = [
    Mirror {
        top: "/usr",
        levels: 2,
        watched: 0,
    },
    Mirror {
        top: "/usr/local",
        levels: 6,
        watched: 1,
    },
    Mirror {
        top: "/opt",
        levels: 3,
        watched: 0,
    },
    Mirror {
        top: "/etc",
        levels: 1,
        watched: 0,
    },
];

/// A skeleton that stays as long as the lease is held.
pub(super) struct Skeleton {
    pub(super) path: PathBuf,
    pub(super) lease: File,
}

/// The name of the part for one directory.
pub(super) fn name_of(top: &str) -> String {
    top.trim_start_matches('/').replace('/', "-")
}

/// What was known of a directory at some time: which it is, and when something about it changed.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Fact {
    path: PathBuf,
    identity: (u64, u64),
    changed: (i64, i64),
}

impl Fact {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            identity: (found.dev(), found.ino()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    pub(super) fn still_holds(&self) -> bool {
        Self::of(&self.path).is_ok_and(|now| now == *self)
    }
}

/// The skeleton of directories of which these are the facts, from a directory that holds skeletons.
pub(super) fn lease(
    store: &Path,
    tops: &[&str],
    facts: &[Fact],
    identity: Identity,
) -> io::Result<Skeleton> {
    let key = key(facts, identity);
    for _ in 0..ATTEMPTS_MAX {
        if let Some(skeleton) = hold(store, &key)? {
            return Ok(skeleton);
        }
        make(store, &key, tops, identity)?;
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Takes hold of a skeleton, if it is there.
fn hold(store: &Path, key: &str) -> io::Result<Option<Skeleton>> {
    let path = store.join(key);
    let lease = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lease => lease?,
    };
    match flock(&lease, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    // Between the two it may have been removed, and another made.
    let is_same = fs::symlink_metadata(&path)
        .and_then(|now| Ok(now.ino() == lease.metadata()?.ino()))
        .unwrap_or(false);
    Ok(is_same.then_some(Skeleton { path, lease }))
}

fn make(store: &Path, key: &str, tops: &[&str], identity: Identity) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(store)?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(store.join(".lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let path = store.join(key);
    if path.exists() {
        return Ok(());
    }
    remove_unused(store)?;
    let unfinished = store.join(UNFINISHED);
    make_directory(&unfinished)?;
    let mut left = DIRECTORIES_MAX;
    for top in tops {
        let base = unfinished.join(name_of(top));
        make_directory(&base)?;
        for mirrored in mirrored(top, &mut left) {
            if let Ok(below) = mirrored.strip_prefix(top) {
                make_directory(&base.join(below))?;
            }
        }
        if *top == "/etc" {
            settle(&base, identity)?;
        }
    }
    if rustix::process::geteuid().is_root() {
        give(&unfinished, identity)?;
    }
    fs::rename(&unfinished, &path)
}

/// Makes all of it the sandbox's user's, by the number that this user has inside. So the
/// sandbox's own namespace says who that is outside.
fn give(path: &Path, identity: Identity) -> io::Result<()> {
    lchown(path, Some(identity.uid_inside), Some(identity.gid_inside))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), identity)?;
        }
    }
    Ok(())
}

/// Whatever mask we were started with, everyone can enter it.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Makes what every sandbox has below `/etc`.
fn settle(etc: &Path, identity: Identity) -> io::Result<()> {
    let common = generated::COMMON.map(|(name, text)| (name, text.to_owned()));
    for (name, text) in common.into_iter().chain(generated::users(identity)) {
        let path = etc.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    }
    secrets::hide(etc)
}

/// Removes what a killed maker has left, and skeletons that no sandbox stands on. The caller
/// holds the lock.
fn remove_unused(store: &Path) -> io::Result<()> {
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        let Some(directory) = path.is_dir().then(|| File::open(&path)).transpose()? else {
            continue;
        };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// What the watched directories are like.
pub(super) fn facts(tops: &[&str]) -> io::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for top in tops {
        let mut watched = BTreeSet::from([PathBuf::from(top)]);
        for mirror in mirrors_of(top) {
            walk(
                Path::new(mirror.top),
                mirror.watched,
                &mut watched,
                DIRECTORIES_MAX,
            );
        }
        for path in watched {
            facts.push(Fact::of(&path)?);
        }
    }
    Ok(facts)
}

fn key(facts: &[Fact], identity: Identity) -> String {
    let mut hasher = DefaultHasher::new();
    (GENERATION, identity.uid_inside, identity.gid_inside).hash(&mut hasher);
    facts.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// All directories that are mirrored of one, each after those it is in.
fn mirrored(top: &str, left: &mut usize) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    // What is wanted in whole comes before what the bound may cut.
    for mirror in mirrors_of(top).rev() {
        if mirror.top != top {
            found.insert(PathBuf::from(mirror.top));
        }
        walk(Path::new(mirror.top), mirror.levels, &mut found, *left);
    }
    *left = left.saturating_sub(found.len());
    found
}

/// Those that apply to a directory: its own, and those of directories in it that are part of it.
fn mirrors_of(top: &str) -> impl DoubleEndedIterator<Item = &'static Mirror> {
    let device = |path: &str| {
        fs::symlink_metadata(path)
            .ok()
            .filter(|found| found.is_dir())
            .map(|found| found.dev())
    };
    let own = device(top);
    MIRRORS
        .iter()
        .filter(move |mirror| Path::new(mirror.top).starts_with(top) && device(mirror.top) == own)
}

/// Finds directories up to a number of levels below one, level by level, of the same file system
/// and open to everyone. One that cannot be read has nothing in it that could be shown.
fn walk(top: &Path, levels: usize, found: &mut BTreeSet<PathBuf>, most: usize) {
    let Ok(device) = fs::symlink_metadata(top).map(|top| top.dev()) else {
        return;
    };
    let mut level = vec![top.to_owned()];
    for _ in 0..levels {
        let mut next = Vec::new();
        for directory in level {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if found.len() >= most {
                    return;
                }
                if is_open_directory(&entry, device) {
                    next.push(entry.path());
                    found.insert(entry.path());
                }
            }
        }
        level = next;
    }
}

fn is_open_directory(entry: &fs::DirEntry, device: u64) -> bool {
    /// Others may list it and enter it.
    const OPEN: u32 = 0o005;
    entry.file_type().is_ok_and(|kind| kind.is_dir())
        && entry
            .metadata()
            .is_ok_and(|found| found.mode() & OPEN == OPEN && found.dev() == device)
}
