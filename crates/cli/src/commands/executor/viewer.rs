//! The file viewer, and the file that tells browsers' drivers where it is.
//!
//! Neither is needed to perform actions, so whatever goes wrong here is a warning.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, fchown},
    path::{Path, PathBuf},
};

use zareba_executor::Owner;
use zareba_wire::viewer::Viewer;

use crate::say;

/// Where OpenHands' browser looks for the viewer.
const ADDRESS_FILE: &str = "/tmp/oh-server-url";

/// How many ports above the executor's are tried.
const PORTS: u16 = 1024;

/// Takes a port for the viewer, above the executor's as in the contract.
pub(super) fn bind(port: u16) -> Option<Viewer> {
    let first = port.checked_add(1).filter(|_| port != 0);
    let ports = first.map_or(0..=0, |first| first..=port.saturating_add(PORTS));
    Viewer::bind(ports)
        .inspect_err(|error| {
            say::warning(format_args!("there is no file viewer: {error}"));
        })
        .ok()
}

/// The published address, for the one user whose shells read it; taken back on drop, unless another server has published its own.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
    url: String,
    reader: Owner,
}

impl Published {
    /// Publishes where the viewer is.
    pub(super) fn new(url: String, reader: Owner) -> Option<Self> {
        let published = Self {
            path: PathBuf::from(ADDRESS_FILE),
            url,
            reader,
        };
        let written = published.write();
        if let Err(error) = &written {
            say::warning(format_args!("cannot write `{ADDRESS_FILE}`: {error}"));
        }
        written.is_ok().then_some(published)
    }

    /// Written beside and moved over, so that nobody reads half of it, and a link that lies
    /// there is replaced and not followed.
    fn write(&self) -> io::Result<()> {
        let draft = self.path.with_extension(std::process::id().to_string());
        let result = self
            .write_new(&draft)
            .and_then(|()| fs::rename(&draft, &self.path));
        if result.is_err() {
            let _ = fs::remove_file(&draft);
        }
        result
    }

    /// The address is the right to see files, which other users do not have.
    fn write_new(&self, path: &Path) -> io::Result<()> {
        let mut file: File = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        if let Owner::User { uid, gid } = self.reader {
            fchown(&file, Some(uid), Some(gid))?;
        }
        file.write_all(self.url.as_bytes())
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        if fs::read(&self.path).is_ok_and(|found| found == self.url.as_bytes()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn published(path: &Path, url: &str) -> Published {
        let published = Published {
            path: path.to_owned(),
            url: url.to_owned(),
            reader: Owner::Ourselves,
        };
        published.write().unwrap();
        published
    }

    #[test]
    fn an_address_is_taken_back_unless_somebody_else_published_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("oh-server-url");
        let first = published(&path, "http://localhost:1");
        assert_eq!(fs::read_to_string(&path).unwrap(), "http://localhost:1");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = published(&path, "http://localhost:2");
        drop(first);
        assert_eq!(fs::read_to_string(&path).unwrap(), "http://localhost:2");
        drop(second);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
