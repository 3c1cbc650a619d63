//! What pins are kept in: a file for each tenant that several processes share, or memory.

use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::Known;

/// A file of pins; all that may be remembered of one tenant fits.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long others may keep a file locked, and how often that is tried.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// What files of pins end with; others lie beside them.
const FILE_ENDING: &str = "json";

/// Why pins could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {deed} the accepted definitions of MCP tools in `{path}`; move that away to begin anew"
)]
pub struct PinError {
    deed: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// What the pins of all tenants are kept in.
#[derive(Debug, Default)]
pub(super) struct Stores {
    directory: Option<PathBuf>,
    /// Those that somebody uses, or all of them where nothing else remembers them.
    open: Mutex<HashMap<String, Arc<Store>>>,
}

/// What the pins of one tenant are kept in.
#[derive(Debug, Default)]
pub(super) struct Store {
    file: Option<PathBuf>,
    seen: Mutex<Seen>,
}

/// The file as it was seen last, or what there is in memory.
#[derive(Debug, Default)]
struct Seen {
    known: Known,
    /// Which file that was; `None` when there was none.
    stamp: Option<Stamp>,
    generation: u64,
}

/// Tells one content of a file from the next: each is a file of its own that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Stores {
    pub(super) fn in_directory(path: &Path) -> Self {
        Self {
            directory: Some(path.to_owned()),
            open: Mutex::default(),
        }
    }

    /// Those of the tenant whose file has that name.
    pub(super) fn of(&self, name: &str) -> Arc<Store> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.directory.is_some() {
            open.retain(|_, store| Arc::strong_count(store) > 1);
        }
        let made = || {
            let directory = self.directory.as_ref();
            let file = directory.map(|it| it.join(name).with_extension(FILE_ENDING));
            Arc::new(Store::new(file))
        };
        Arc::clone(open.entry(name.to_owned()).or_insert_with(made))
    }

    /// Those of all tenants, also of those whom only other processes have seen.
    pub(super) fn all(&self) -> Result<Vec<Arc<Store>>, PinError> {
        let Some(directory) = &self.directory else {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(open.values().cloned().collect());
        };
        let failed = |source| PinError {
            deed: "find",
            path: directory.clone(),
            source,
        };
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut stores = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|it| it == FILE_ENDING) {
                stores.push(Arc::new(Store::new(Some(path))));
            }
        }
        Ok(stores)
    }
}

impl Store {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            seen: Mutex::default(),
        }
    }

    /// A number that is another one after every change.
    pub(super) fn generation(&self) -> Result<u64, PinError> {
        Ok(self.refreshed()?.generation)
    }

    /// Looks at what is known now.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Known) -> T) -> Result<T, PinError> {
        Ok(look(&self.refreshed()?.known))
    }

    /// Changes what is known, while nobody else does. Whoever changes it says whether they did.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Known) -> (T, bool),
    ) -> Result<T, PinError> {
        let write_failed = |source| self.error("write", source);
        // Ends with the handle. Before the mutex, for which nobody shall wait long.
        let _alone = match &self.file {
            Some(path) => Some(lock(path).map_err(write_failed)?),
            None => None,
        };
        let mut seen = self.refreshed()?;
        let mut known = seen.known.clone();
        let (outcome, is_changed) = change(&mut known);
        if is_changed {
            if let Some(path) = &self.file {
                seen.stamp = Some(replace(path, &known).map_err(write_failed)?);
            }
            seen.known = known;
            seen.generation += 1;
        }
        Ok(outcome)
    }

    pub(super) fn failed(&self, deed: &'static str, reason: &'static str) -> PinError {
        self.error(deed, io::Error::other(reason))
    }

    /// What is known, read again if the file is another one by now.
    fn refreshed(&self) -> Result<MutexGuard<'_, Seen>, PinError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.file else {
            return Ok(seen);
        };
        let failed = |source| self.error("read", source);
        let now = match fs::metadata(path) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if now == seen.stamp {
            return Ok(seen);
        }
        (seen.known, seen.stamp) = match read(path) {
            Ok((known, stamp)) => (known, Some(stamp)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Known::new(), None),
            Err(error) => return Err(failed(error)),
        };
        seen.generation += 1;
        Ok(seen)
    }

    fn error(&self, deed: &'static str, source: io::Error) -> PinError {
        PinError {
            deed,
            path: self.file.clone().unwrap_or_default(),
            source,
        }
    }
}

/// What a file holds, and which one it was.
fn read(path: &Path) -> io::Result<(Known, Stamp)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut file, &mut text)?;
    Ok((serde_json::from_slice(&text)?, Stamp::of(&metadata)))
}

/// Waits until nobody else changes the file, and not without end. A file beside it is locked, as
/// the file itself is replaced by each change.
fn lock(path: &Path) -> io::Result<File> {
    fs::create_dir_all(directory(path)?)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = File::options().create(true).append(true).open(&name)?;
    let until = Instant::now() + LOCK_PATIENCE;
    // The kernel tells nobody when a lock is free who does not wait for it without end.
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "somebody has kept `{}` locked for {LOCK_PATIENCE:?}; see who that is with \
                     `fuser`",
                    name.display()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
        }
    }
}

/// Replaces a file at once, so that nobody ever reads half of it.
fn replace(path: &Path, known: &Known) -> io::Result<Stamp> {
    let text = json!(known).to_string();
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(io::Error::other("it would be too large"));
    }
    let mut file = tempfile::NamedTempFile::new_in(directory(path)?)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.as_file().sync_all()?;
    let file = file.persist(path).map_err(|error| error.error)?;
    Ok(Stamp::of(&file.metadata()?))
}

fn directory(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::Error::other("it has no directory"))
}
