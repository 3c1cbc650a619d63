//! Where the server of a state directory is, for programs on the same machine.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// The name of the file that says it.
const FILE: &str = "server.json";

/// A server's address, readable by its owner as long as the server runs.
#[derive(Debug)]
pub(crate) struct Published {
    file: PathBuf,
    url: String,
}

/// What was found of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) url: String,
    pub(crate) pid: i32,
}

impl Published {
    /// Writes the address of this process.
    pub(crate) fn write(state: &Path, url: &str) -> Result<Self, Failure> {
        let file = state.join(FILE);
        let text = json!({ "url": url, "pid": std::process::id() }).to_string();
        match replace(&file, text.as_bytes()) {
            // What can be read should be, and a server says by itself where it is.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                say::note(format_args!(
                    "no space is left for `{}`: commands must be told by --server where this server is",
                    file.display()
                ));
            }
            written => {
                written.or_fail(Exit::Start, format!("cannot write `{}`", file.display()))?;
            }
        }
        Ok(Self {
            file,
            url: url.to_owned(),
        })
    }

    /// What the last server of a state directory has written, unless it ended in order.
    pub(crate) fn find(state: &Path) -> Option<Found> {
        let text = fs::read(state.join(FILE)).ok()?;
        let value: Value = serde_json::from_slice(&text).ok()?;
        Some(Found {
            url: value["url"].as_str()?.to_owned(),
            pid: i32::try_from(value["pid"].as_i64()?).ok()?,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Whoever reads a stale one finds that nobody answers.
        let _ = fs::remove_file(&self.file);
    }
}

/// Writes a file that only its owner can read; readers see the old one or the new one.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = file.with_extension("new");
    let _ = fs::remove_file(&beside);
    let mut written = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&beside, file)
}
