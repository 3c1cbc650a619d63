//! Documents in a sandbox's private directory, by which one process tells another of it.
//!
//! Each is written under another name first, so that a reader finds the whole of one, and only
//! its user can read it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, de::DeserializeOwned};

/// A document is far smaller; whatever is larger is none.
const BYTES_MAX: u64 = 1024 * 1024;

/// Drafts of this process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// Writes a document, in the place of one that is there. A reader finds the one or the other.
///
/// # Errors
/// When the system refuses.
pub fn write(directory: &Path, name: &str, document: &impl Serialize) -> io::Result<()> {
    Draft::write(directory, name, document)?.publish()
}

/// A document that nobody finds yet.
#[derive(Debug)]
#[must_use = "nobody finds it before it is published"]
pub struct Draft {
    draft: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Writes a document ahead of the moment in which it shall be found.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(directory: &Path, name: &str, document: &impl Serialize) -> io::Result<Self> {
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = directory.join(format!("{name}.{}-{number}", std::process::id()));
        create(&draft, document)?;
        let path = directory.join(name);
        Ok(Self { draft, path })
    }

    /// From now on it is found, in the place of one that is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn publish(self) -> io::Result<()> {
        fs::rename(self.draft, self.path)
    }
}

/// Writes a document in the place of one that nobody looks for yet. A reader may find none for a
/// moment; in return nobody waits for the disk, as file systems do that make sure of a file before
/// it replaces another.
///
/// # Errors
/// When the system refuses.
pub fn replace(directory: &Path, name: &str, document: &impl Serialize) -> io::Result<()> {
    let path = directory.join(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => create(&path, document),
    }
}

/// None when there is none.
pub fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> Option<T> {
    let file = File::open(directory.join(name)).ok()?;
    // One more than there is, so that its end is found without asking for more room.
    let length = file.metadata().ok()?.len().min(BYTES_MAX) + 1;
    let mut content = Vec::with_capacity(usize::try_from(length).ok()?);
    file.take(BYTES_MAX).read_to_end(&mut content).ok()?;
    serde_json::from_slice(&content).ok()
}

fn create(path: &Path, document: &impl Serialize) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create(true)
        // What a killed process of the same number has left.
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(&serde_json::to_vec(document)?)
}

/// A length of time as documents have it.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A moment as documents have it.
pub fn since_epoch(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, milliseconds)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_document_is_read_as_it_was_written_last_and_nobody_else_can() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(read::<Value>(place.path(), "note"), None);
        type Writing = fn(&Path, &str, &Value) -> io::Result<()>;
        let ways: [Writing; 4] = [write, write, replace, write];
        for (number, way) in ways.into_iter().enumerate() {
            let document = json!({ "number": number });
            way(place.path(), "note", &document).unwrap();
            assert_eq!(read(place.path(), "note"), Some(document));
        }
        replace(place.path(), "new", &json!(1)).unwrap();
        let entries: Vec<_> = fs::read_dir(place.path()).unwrap().flatten().collect();
        assert_eq!(entries.len(), 2);
        for entry in entries {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_document_is_none() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("note"), "{").unwrap();
        assert_eq!(read::<Value>(place.path(), "note"), None);
    }
}
