//! The files of projects that this user has trusted, by their content.
//!
//! The record lies beside the user's own configuration and not in the state directory, which is
//! itself a setting: who is trusted must be known before the first setting is. An entry is a full
//! path and a SHA-256, and counts for that content at that place only, so a file that changes is
//! untrusted again. The bytes that were hashed are the bytes that are parsed; nothing is opened
//! twice.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::file::{ProjectFile, user_directory, why_not_ours};

/// The record, in the user's configuration directory.
const RECORD_NAME: &str = "trusted.toml";

/// What it is written as before it takes that name.
const NEW_NAME: &str = ".trusted.toml.new";

/// Far more projects than a person trusts; the record is read whenever a project has a file.
const FILES_MAX: usize = 1000;

/// What that many entries with the longest paths take.
const RECORD_BYTES_MAX: u64 = 8 * 1024 * 1024;

const HEADER: &str = "# Files of projects that `zareba trust` has trusted. `zareba trust --list` shows \
                      them,\n# and `zareba trust --remove FILE` takes one away.\n\n";

/// What the user has trusted.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedFiles {
    #[serde(default, rename = "file")]
    files: Vec<TrustedFile>,
}

/// The content of one file at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedFile {
    /// The full path, without links.
    pub path: PathBuf,
    /// The SHA-256 of the content, in hexadecimal digits.
    pub sha256: String,
}

/// Why the record of trusted files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no directory for it.
    #[error(
        "neither `HOME` nor `XDG_CONFIG_HOME` names a directory for the record of trusted files"
    )]
    NoDirectory,
    /// The record cannot be read.
    #[error("cannot read `{}`", path.display())]
    ReadRecord {
        /// The record.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another user could have written the record.
    #[error("cannot use the record of trusted files `{}`: {reason}", path.display())]
    NotOurs {
        /// The record.
        path: PathBuf,
        /// Why it is not the user's alone.
        reason: &'static str,
    },
    /// The record is no record.
    #[error("`{}` is not a record of trusted files; remove it and trust them again", path.display())]
    ParseRecord {
        /// The record.
        path: PathBuf,
        /// Why not.
        source: Box<toml::de::Error>,
    },
    /// The record cannot be written.
    #[error("cannot write `{}`", path.display())]
    WriteRecord {
        /// The record.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path of the file to trust cannot be recorded.
    #[error("`{}` has no full path in UTF-8, by which it could be recorded", .0.display())]
    NoPath(PathBuf),
    /// The record is full.
    #[error("{FILES_MAX} files are trusted already; `zareba trust --remove FILE` takes one away")]
    Full,
}

impl TrustedFiles {
    /// Reads the record of this user. One that is not there is empty.
    ///
    /// # Errors
    /// The record cannot be read, or another user could have written it.
    pub fn load(environment: &Environment) -> Result<Self, TrustError> {
        match user_directory(environment) {
            Some(directory) => read(&directory.join(RECORD_NAME)),
            None => Ok(Self::default()),
        }
    }

    /// All of them, by path.
    pub fn files(&self) -> &[TrustedFile] {
        &self.files
    }

    /// Whether the content of this file is trusted at its place.
    pub fn hold(&self, file: &ProjectFile) -> bool {
        let is_it = |known: &TrustedFile| {
            Some(known.path.as_path()) == file.canonical_path() && known.sha256 == file.sha256()
        };
        self.files.iter().any(is_it)
    }

    /// Records that the user trusts the content that was read from this file, in place of what was
    /// trusted there before.
    ///
    /// # Errors
    /// The record cannot be read or written, or is full.
    pub fn trust(environment: &Environment, file: &ProjectFile) -> Result<(), TrustError> {
        let path = file.canonical_path().filter(|path| path.to_str().is_some());
        let path = path.ok_or_else(|| TrustError::NoPath(file.path().to_owned()))?;
        change(environment, |trusted| {
            trusted.files.retain(|known| known.path != path);
            if trusted.files.len() >= FILES_MAX {
                return Err(TrustError::Full);
            }
            trusted.files.push(TrustedFile {
                path: path.to_owned(),
                sha256: file.sha256().to_owned(),
            });
            trusted.files.sort_by(|a, b| a.path.cmp(&b.path));
            Ok(())
        })
    }

    /// Takes the trust in whatever is at this path away. Returns whether there was any.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub fn forget(environment: &Environment, path: &Path) -> Result<bool, TrustError> {
        // A file that is gone by now is named by what its path would be.
        let full = path.canonicalize().or_else(|_| std::path::absolute(path));
        let full = full.map_err(|_| TrustError::NoPath(path.to_owned()))?;
        change(environment, |trusted| {
            let before = trusted.files.len();
            trusted.files.retain(|known| known.path != full);
            Ok(trusted.files.len() != before)
        })
    }
}

/// Changes the record while no other command does, and replaces it as a whole.
fn change<T>(
    environment: &Environment,
    edit: impl FnOnce(&mut TrustedFiles) -> Result<T, TrustError>,
) -> Result<T, TrustError> {
    let directory = user_directory(environment).ok_or(TrustError::NoDirectory)?;
    let path = directory.join(RECORD_NAME);
    let unwritable = |source: io::Error| TrustError::WriteRecord {
        path: path.clone(),
        source,
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(&directory).map_err(unwritable)?;
    let lock = File::open(&directory).map_err(unwritable)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
    let mut trusted = read(&path)?;
    let outcome = edit(&mut trusted)?;
    write(&directory, &path, &trusted).map_err(unwritable)?;
    Ok(outcome)
}

fn read(path: &Path) -> Result<TrustedFiles, TrustError> {
    let unreadable = |source: io::Error| TrustError::ReadRecord {
        path: path.to_owned(),
        source,
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TrustedFiles::default()),
        other => other.map_err(unreadable)?,
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if let Some(reason) = why_not_ours(&metadata) {
        return Err(TrustError::NotOurs {
            path: path.to_owned(),
            reason,
        });
    }
    let mut text = String::new();
    file.take(RECORD_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    toml::from_str(&text).map_err(|source| TrustError::ParseRecord {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// Puts a whole new record in the place of the old one. Its directory is locked.
fn write(directory: &Path, path: &Path, trusted: &TrustedFiles) -> io::Result<()> {
    let text = toml::to_string(trusted).map_err(io::Error::other)?;
    let new = directory.join(NEW_NAME);
    // One that was left by a command that was killed has whatever permissions it has.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(HEADER.as_bytes())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
