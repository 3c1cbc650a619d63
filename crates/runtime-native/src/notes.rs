//! Documents in a sandbox's private directory, by which one process tells another of it.
//!
//! Each is written under another name first, so that a reader finds the whole of it or none, and
//! only its user can read it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use serde_json::Value;

/// A document is far smaller; whatever is larger is none.
const BYTES_MAX: u64 = 1024 * 1024;

/// Writes a document that is not there yet.
pub(crate) fn write(directory: &Path, name: &str, document: &Value) -> io::Result<()> {
    let draft = directory.join(format!("{name}.new"));
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(document.to_string().as_bytes())?;
    fs::rename(draft, directory.join(name))
}

/// None when there is none.
pub(crate) fn read(directory: &Path, name: &str) -> Option<Value> {
    let mut content = Vec::new();
    let file = File::open(directory.join(name)).ok()?;
    file.take(BYTES_MAX).read_to_end(&mut content).ok()?;
    serde_json::from_slice(&content).ok()
}
