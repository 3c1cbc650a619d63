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
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};
use zareba_confine::{Identity, is_root_of_machine};

use super::{divided, generated, secrets};

/// Changes with what a skeleton is made like.
const GENERATION: u32 = 3;

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

/// Of a directory that is copied, because it cannot be shown.
const COPIED_FILES_MAX: usize = 20_000;
const COPIED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const COPIED_LEVELS: usize = 16;

/// A directory of the machine that is shown by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

/// What a skeleton has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Directories that lie above its own.
    Mirrored,
    /// The names of its parts, which are shown by themselves.
    Divided,
    /// All that everyone may read.
    Copied,
    /// Nothing: it is shown as it is, and cannot be changed.
    Bound,
}

#[cfg(test)]
impl Top {
    /// One without anything mounted in it.
    pub(super) fn mirrored(path: &str) -> Self {
        Self {
            path: PathBuf::from(path),
            kind: Kind::Mirrored,
        }
    }
}

/// A skeleton that stays as long as the lease is held.
pub(super) struct Skeleton {
    pub(super) path: PathBuf,
    pub(super) lease: File,
}

/// The name of the part for one directory.
pub(super) fn name_of(top: &Path) -> String {
    let name = top.to_string_lossy();
    let name = name.trim_start_matches('/');
    name.replace('-', "--").replace('/', "-")
}

/// What was known of a directory at some time: which it is, and when something about it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    tops: &[Top],
    facts: &[Fact],
    identity: Identity,
) -> io::Result<Skeleton> {
    let key = key(tops, facts, identity);
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

fn make(store: &Path, key: &str, tops: &[Top], identity: Identity) -> io::Result<()> {
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
        let Top { path, kind } = top;
        let base = unfinished.join(name_of(path));
        match kind {
            Kind::Bound => continue,
            Kind::Mirrored => mirror(path, &base, &mut left)?,
            Kind::Divided => furnish(path, &base)?,
            Kind::Copied => Copy::default().directory(path, &base, COPIED_LEVELS)?,
        }
        if path == Path::new("/etc") {
            settle(&base, identity)?;
        }
    }
    if is_root_of_machine() {
        give(&unfinished, identity)?;
    }
    fs::rename(&unfinished, &path)
}

fn mirror(top: &Path, base: &Path, left: &mut usize) -> io::Result<()> {
    make_directory(base)?;
    for mirrored in mirrored(top, left) {
        if let Ok(below) = mirrored.strip_prefix(top) {
            make_directory(&base.join(below))?;
        }
    }
    Ok(())
}

/// Makes something of each name for a part to be mounted on; links are parts by themselves.
fn furnish(top: &Path, base: &Path) -> io::Result<()> {
    make_directory(base)?;
    for part in divided::parts(top)? {
        let place = base.join(part.file_name().unwrap_or_default());
        let found = fs::symlink_metadata(&part)?;
        if found.is_symlink() {
            symlink(fs::read_link(&part)?, place)?;
        } else if found.is_dir() {
            make_directory(&place)?;
        } else {
            File::create_new(place)?;
        }
    }
    Ok(())
}

/// What was copied so far.
#[derive(Default)]
struct Copy {
    files: usize,
    bytes: u64,
}

impl Copy {
    fn directory(&mut self, from: &Path, to: &Path, levels: usize) -> io::Result<()> {
        make_directory(to)?;
        for part in divided::parts(from)? {
            let place = to.join(part.file_name().unwrap_or_default());
            let found = fs::symlink_metadata(&part)?;
            self.files += 1;
            if found.is_file() {
                self.bytes = self.bytes.saturating_add(found.len());
            }
            if self.files > COPIED_FILES_MAX || self.bytes > COPIED_BYTES_MAX || levels == 0 {
                let problem = format!(
                    "`{}` has other file systems mounted in it and holds too much to be copied: without root, unmount them",
                    from.display()
                );
                return Err(io::Error::other(problem));
            }
            if found.is_symlink() {
                symlink(fs::read_link(&part)?, place)?;
            } else if found.is_dir() {
                self.directory(&part, &place, levels - 1)?;
            } else {
                fs::copy(&part, &place)?;
                fs::set_permissions(&place, fs::Permissions::from_mode(found.mode() & 0o755))?;
            }
        }
        Ok(())
    }
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
        // One that was copied may be a link, which would be followed.
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
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
pub(super) fn facts(tops: &[Top]) -> io::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for Top { path: top, kind } in tops {
        let mut watched = BTreeSet::from([top.clone()]);
        match kind {
            Kind::Mirrored => {
                for mirror in mirrors_of(top) {
                    walk(&mirror.path, mirror.watched, &mut watched, DIRECTORIES_MAX);
                }
            }
            Kind::Copied => walk(top, COPIED_LEVELS, &mut watched, DIRECTORIES_MAX),
            Kind::Divided | Kind::Bound => {}
        }
        for path in watched {
            facts.push(Fact::of(&path)?);
        }
    }
    Ok(facts)
}

/// The same with every version of the program and of its compiler that makes skeletons alike.
fn key(tops: &[Top], facts: &[Fact], identity: Identity) -> String {
    let mut digest = Sha256::new();
    for number in [GENERATION, identity.uid_inside, identity.gid_inside] {
        digest.update(number.to_le_bytes());
    }
    let mut name = |path: &Path| {
        digest.update((path.as_os_str().len() as u64).to_le_bytes());
        digest.update(path.as_os_str().as_bytes());
    };
    for top in tops {
        name(&top.path);
        name(Path::new(match top.kind {
            Kind::Mirrored => "mirrored",
            Kind::Divided => "divided",
            Kind::Copied => "copied",
            Kind::Bound => "bound",
        }));
    }
    for Fact {
        path,
        identity,
        changed,
    } in facts
    {
        name(path);
        let numbers = format!("{identity:?} {changed:?}");
        name(Path::new(&numbers));
    }
    let hash = digest.finalize();
    let [a, b, c, d, e, f, g, h, ..] = hash[..] else {
        return String::new();
    };
    format!("{:016x}", u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// All directories that are mirrored of one, each after those it is in.
fn mirrored(top: &Path, left: &mut usize) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    // What is wanted in whole comes before what the bound may cut.
    for mirror in mirrors_of(top).into_iter().rev() {
        if mirror.path != top {
            found.insert(mirror.path.clone());
        }
        walk(&mirror.path, mirror.levels, &mut found, *left);
    }
    *left = left.saturating_sub(found.len());
    found
}

/// What is mirrored at a path.
struct Mirrored {
    path: PathBuf,
    levels: usize,
    watched: usize,
}

/// Those that apply to a directory: its own, and those of directories in it that are part of it; or what
/// is left of one that it is a part of.
fn mirrors_of(top: &Path) -> Vec<Mirrored> {
    let device = |path: &Path| {
        fs::symlink_metadata(path)
            .ok()
            .filter(|found| found.is_dir())
            .map(|found| found.dev())
    };
    let own = device(top);
    let in_it = MIRRORS.iter().filter(|mirror| {
        Path::new(mirror.top).starts_with(top) && device(Path::new(mirror.top)) == own
    });
    let mut found: Vec<Mirrored> = in_it
        .map(|mirror| Mirrored {
            path: PathBuf::from(mirror.top),
            levels: mirror.levels,
            watched: mirror.watched,
        })
        .collect();
    // The one further down is the better one.
    let around = MIRRORS.iter().rev();
    let around = around.filter(|mirror| found.is_empty() && top.starts_with(mirror.top));
    let below = |mirror: &Mirror| {
        let below = top.strip_prefix(mirror.top).map(Path::components);
        below.map_or(0, Iterator::count)
    };
    let part = around.take(1).map(|mirror| Mirrored {
        path: top.to_owned(),
        levels: mirror.levels.saturating_sub(below(mirror)),
        watched: 0,
    });
    let part: Vec<Mirrored> = part.collect();
    found.extend(part);
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that another build of the program gave is found again, and its leftovers with it.
    #[test]
    fn the_name_of_a_skeleton_is_the_same_in_every_build() {
        let identity = Identity {
            uid_inside: 1000,
            gid_inside: 1000,
            uid_outside: 1,
            gid_outside: 1,
        };
        let fact = Fact {
            path: PathBuf::from("/usr"),
            identity: (1, 2),
            changed: (3, 4),
        };
        let name = key(&[Top::mirrored("/usr")], &[fact], identity);
        assert_eq!(name, "b6ef2745f015c1a3");
    }

    #[test]
    fn names_of_parts_never_meet() {
        let names = ["/usr/lib-x", "/usr/lib/x", "/usr"].map(|top| name_of(Path::new(top)));
        assert_eq!(names, ["usr-lib--x", "usr-lib-x", "usr"]);
    }
}
