//! What pins are kept in: a file that several processes share, or memory.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::json;

use super::Known;

/// A file of pins; all that may be remembered fits.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why pins could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {deed} the accepted definitions of MCP tools in `{path}`; move the file away to begin anew"
)]
pub struct PinError {
    deed: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// What pins are kept in.
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

impl Store {
    pub(super) fn in_file(path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
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

/// Waits until no other process changes the file. A file beside it is locked, as the file itself
/// is replaced by each change.
fn lock(path: &Path) -> io::Result<File> {
    fs::create_dir_all(directory(path)?)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = File::options()
        .create(true)
        .append(true)
        .open(PathBuf::from(name))?;
    file.lock()?;
    Ok(file)
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
