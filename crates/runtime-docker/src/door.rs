//! The way into a container: a Unix socket in a directory that both sides see (DK-4).
//!
//! No port is open for it, and no network is needed. The directory is written to from inside, so
//! nothing in it is trusted: what lies there under the socket's name may be a link to a socket of
//! this machine. It is therefore opened once without following anything, must be a socket, and is
//! from then on reached through that handle, whatever becomes of the name (G-4).

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, fchown},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use zareba_wire::{Endpoint, SessionKey, client::ExecutorClient};

/// The directory's name outside.
const DIRECTORY: &str = "door";
/// The socket's name in it.
pub(crate) const SOCKET: &str = "s";

/// The directory, before anybody has come through.
#[derive(Debug)]
pub(crate) struct Doorway {
    pub(crate) path: PathBuf,
    directory: OwnedFd,
}

/// The way to an executor. Clones share its connections and the handle that they are made by.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    client: ExecutorClient,
    _socket: Arc<OwnedFd>,
}

/// Why there is no way in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoorError {
    #[error("cannot prepare the directory `{path}`", path = path.display())]
    Prepare { path: PathBuf, source: io::Error },
    #[error(
        "there is no socket in `{path}` though the executor listens; \
         an Engine on another machine cannot be used",
        path = path.display()
    )]
    Missing { path: PathBuf, source: io::Error },
    #[error("what lies in `{path}` is no socket", path = path.display())]
    NotASocket { path: PathBuf },
    #[error("the key has a form that cannot be sent")]
    Key,
}

impl Doorway {
    /// Makes the directory for a user inside. Only root can give it to somebody else.
    pub(crate) fn make(sandbox: &Path, uid: u32, gid: u32) -> Result<Self, DoorError> {
        let path = sandbox.join(DIRECTORY);
        let made = || {
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            if uid != rustix::process::geteuid().as_raw() {
                chown(&path, Some(uid), Some(gid))?;
            }
            Ok(())
        };
        made().map_err(|source| DoorError::Prepare {
            path: path.clone(),
            source,
        })?;
        Self::find(sandbox)
    }

    /// The directory of a sandbox that was made earlier.
    pub(crate) fn find(sandbox: &Path) -> Result<Self, DoorError> {
        let path = sandbox.join(DIRECTORY);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open(&path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self { path, directory }),
            Err(error) => Err(DoorError::Prepare {
                path,
                source: error.into(),
            }),
        }
    }

    /// Opens the way once the executor listens.
    pub(crate) fn open(&self, key: &str) -> Result<Link, DoorError> {
        let path = || self.path.join(SOCKET);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let socket = openat(&self.directory, SOCKET, flags, Mode::empty());
        let socket = socket.map_err(|error| DoorError::Missing {
            path: path(),
            source: error.into(),
        })?;
        let kind = fstat(&socket).map(|found| FileType::from_raw_mode(found.st_mode));
        if kind != Ok(FileType::Socket) {
            return Err(DoorError::NotASocket { path: path() });
        }
        let key = SessionKey::new(key).map_err(|_| DoorError::Key)?;
        // The kernel follows this to the inode that was opened, and to nothing else.
        let handle = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
        Ok(Link {
            client: ExecutorClient::new(Endpoint::Unix(handle), Some(key)),
            _socket: Arc::new(socket),
        })
    }

    /// Lets the user inside put a socket into it again.
    pub(crate) fn give(&self, uid: u32, gid: u32) -> io::Result<()> {
        self.hand_to(uid, gid, 0o700)
    }

    /// Takes the directory back, so that nothing more can be put into it from inside. Only root
    /// can; for others the user inside is themselves.
    pub(crate) fn shut(&self) -> io::Result<()> {
        self.hand_to(0, 0, 0o711)
    }

    fn hand_to(&self, uid: u32, gid: u32, mode: u32) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        // By the handle: the name could be somebody else's by now.
        let handle = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        let directory = File::open(handle)?;
        directory.set_permissions(Permissions::from_mode(mode))?;
        fchown(&directory, Some(uid), Some(gid))
    }
}

impl Link {
    pub(crate) fn client(&self) -> &ExecutorClient {
        &self.client
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn doorway(sandbox: &Path) -> Doorway {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Doorway::make(sandbox, uid.as_raw(), gid.as_raw()).unwrap()
    }

    #[test]
    fn a_link_to_another_socket_is_not_followed_g_4() {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        let _listener = UnixListener::bind(&victim).unwrap();
        let doorway = doorway(place.path());
        assert!(matches!(doorway.open(KEY), Err(DoorError::Missing { .. })));
        let name = doorway.path.join(SOCKET);
        symlink(&victim, &name).unwrap();
        assert!(matches!(
            doorway.open(KEY),
            Err(DoorError::NotASocket { .. })
        ));
        fs::remove_file(&name).unwrap();
        fs::write(&name, "").unwrap();
        assert!(matches!(
            doorway.open(KEY),
            Err(DoorError::NotASocket { .. })
        ));
    }

    #[tokio::test]
    async fn a_name_that_means_another_socket_later_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let doorway = doorway(place.path());
        let name = doorway.path.join(SOCKET);
        let first = UnixListener::bind(&name).unwrap();
        let link = doorway.open(KEY).unwrap();
        fs::remove_file(&name).unwrap();
        let second = UnixListener::bind(&name).unwrap();
        second.set_nonblocking(true).unwrap();
        let asked = tokio::spawn(async move { link.client().alive().await });
        let accepted = tokio::task::spawn_blocking(move || first.accept()).await;
        accepted.unwrap().unwrap();
        assert!(asked.await.unwrap().is_err(), "nobody answered");
        let nobody = second.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(nobody, Err(io::ErrorKind::WouldBlock));
    }
}
