//! A Unix socket that only its owner can open, and that is gone when its server is.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixStream as StdUnixStream,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use tokio::net::{UnixListener, UnixStream};

use super::BindError;
use crate::Endpoint;

/// A bound socket and its name in the file system.
#[derive(Debug)]
pub(super) struct OwnedSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: a name that means another file by now is not ours to remove.
    identity: (u64, u64),
}

impl OwnedSocket {
    pub(super) fn bind(path: &Path) -> Result<Self, BindError> {
        let failed = |source| BindError::Listen {
            endpoint: Endpoint::Unix(path.into()),
            source,
        };
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // Two servers that start at once must not both find the same stale socket and remove
        // each other's new one. The lock ends with the file.
        let lock = File::open(directory).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        remove_stale(path)?;
        Self::bind_private(directory, path).map_err(failed)
    }

    /// Binds under another name first: the final one appears only with its final mode, and only
    /// if nothing has it.
    fn bind_private(directory: &Path, path: &Path) -> io::Result<Self> {
        let draft = directory.join(format!(".{:08x}", rand::random::<u32>()));
        let listener = UnixListener::bind(&draft)?;
        let publish = || {
            fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
            fs::hard_link(&draft, path)?;
            fs::symlink_metadata(path)
        };
        let published = publish();
        fs::remove_file(&draft)?;
        let metadata = published?;
        Ok(Self {
            listener,
            path: path.into(),
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for OwnedSocket {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

/// Removes a socket that nobody answers on; leaves everything else alone.
fn remove_stale(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Listen {
        endpoint: Endpoint::Unix(path.into()),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path.into() });
        }
        Ok(_) => {}
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        // Also when the backlog is full or the mode forbids it: someone may well be there.
        Ok(_) | Err(_) => Err(BindError::SocketInUse { path: path.into() }),
    }
}
