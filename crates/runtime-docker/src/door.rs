//! The way into a container: a Unix socket in a directory that both sides see (DK-4).
//!
//! No port is open for it, and no network is needed. The directory is written to from inside, so
//! nothing in it is trusted: what lies there under the socket's name may be a link to a socket of
//! this machine. It is therefore opened once without following anything, must be a socket, and is
//! from then on reached through that handle, whatever becomes of the name (G-4).
//!
//! An Engine on another machine shares no directory with us. The socket is then in a place that
//! only the container has, and the way to it is a `relay`.

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
use tokio::net::UnixStream;
use zareba_wire::{Endpoint, SessionKey, client::ExecutorClient};

use crate::{EnginePlace, engine::Engine, plan::Identity, relay::Relay};

/// The directory's name outside.
const DIRECTORY: &str = "door";
/// The socket's name in it.
pub(crate) const SOCKET: &str = "s";

/// Where the way in is going to be.
#[derive(Debug)]
pub(crate) enum Doorway {
    /// A directory that both sides see.
    Shared(SharedDoor),
    /// The Engine is elsewhere; this is the sandbox's directory here.
    Relayed(PathBuf),
}

/// The directory, before anybody has come through.
#[derive(Debug)]
pub(crate) struct SharedDoor {
    path: PathBuf,
    directory: OwnedFd,
}

/// The way to an executor. Clones share its connections and the handle that they are made by.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    client: ExecutorClient,
    way: Arc<Way>,
}

/// What keeps the way open.
#[derive(Debug)]
enum Way {
    Socket { handle: OwnedFd },
    Relay { _relay: Relay },
}

/// Why there is no way in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoorError {
    #[error("cannot prepare the directory `{path}`", path = path.display())]
    Prepare { path: PathBuf, source: io::Error },
    #[error(
        "there is no socket in `{path}` though the executor listens; \
         if the Engine is on another machine, say so by `docker.remote`",
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
    pub(crate) fn make(
        place: EnginePlace,
        sandbox: &Path,
        user: Identity,
    ) -> Result<Self, DoorError> {
        match place {
            EnginePlace::ThisMachine => SharedDoor::make(sandbox, user).map(Self::Shared),
            EnginePlace::Elsewhere => Ok(Self::Relayed(sandbox.to_owned())),
        }
    }

    /// That of a sandbox that was made earlier.
    pub(crate) fn find(place: EnginePlace, sandbox: &Path) -> Result<Self, DoorError> {
        match place {
            EnginePlace::ThisMachine => SharedDoor::find(sandbox).map(Self::Shared),
            EnginePlace::Elsewhere => Ok(Self::Relayed(sandbox.to_owned())),
        }
    }

    /// The directory that is to be mounted.
    pub(crate) fn shared(&self) -> Option<&Path> {
        match self {
            Self::Shared(door) => Some(&door.path),
            Self::Relayed(_) => None,
        }
    }

    /// Opens the way once the executor listens. Must be called inside a runtime.
    pub(crate) fn open(
        &self,
        engine: &Engine,
        container: &str,
        key: &str,
    ) -> Result<Link, DoorError> {
        match self {
            Self::Shared(door) => door.open(key),
            Self::Relayed(directory) => {
                let relay = Relay::listen(directory, engine, container);
                let relay = relay.map_err(|source| DoorError::Prepare {
                    path: directory.clone(),
                    source,
                })?;
                Link::new(relay.path(), key, Way::Relay { _relay: relay })
            }
        }
    }

    /// Lets the user inside put a socket into it again.
    pub(crate) fn give(&self, user: Identity) -> io::Result<()> {
        match self {
            Self::Shared(door) => door.hand_to(user, 0o700),
            Self::Relayed(_) => Ok(()),
        }
    }

    /// Takes the directory back, so that nothing more can be put into it from inside. Only root
    /// can; for others the user inside is themselves.
    pub(crate) fn shut(&self) -> io::Result<()> {
        let us = Identity { uid: 0, gid: 0 };
        match self {
            Self::Shared(door) => door.hand_to(us, 0o711),
            Self::Relayed(_) => Ok(()),
        }
    }
}

impl SharedDoor {
    fn make(sandbox: &Path, user: Identity) -> Result<Self, DoorError> {
        let path = sandbox.join(DIRECTORY);
        let made = || {
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            if user.uid != rustix::process::geteuid().as_raw() {
                chown(&path, Some(user.uid), Some(user.gid))?;
            }
            Ok(())
        };
        made().map_err(|source| DoorError::Prepare {
            path: path.clone(),
            source,
        })?;
        Self::find(sandbox)
    }

    fn find(sandbox: &Path) -> Result<Self, DoorError> {
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

    fn open(&self, key: &str) -> Result<Link, DoorError> {
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
        let path = reached_by(&socket);
        Link::new(path, key, Way::Socket { handle: socket })
    }

    fn hand_to(&self, user: Identity, mode: u32) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        // By the handle: the name could be somebody else's by now.
        let directory = File::open(reached_by(&self.directory))?;
        directory.set_permissions(Permissions::from_mode(mode))?;
        fchown(&directory, Some(user.uid), Some(user.gid))
    }
}

impl Link {
    fn new(socket: PathBuf, key: &str, way: Way) -> Result<Self, DoorError> {
        let key = SessionKey::new(key).map_err(|_| DoorError::Key)?;
        Ok(Self {
            client: ExecutorClient::new(Endpoint::Unix(socket), Some(key)),
            way: Arc::new(way),
        })
    }

    pub(crate) fn client(&self) -> &ExecutorClient {
        &self.client
    }

    /// Whether an executor is still behind it. On this machine the kernel knows whether somebody
    /// listens, and answers in the place of an executor that would have to be woken for it.
    pub(crate) async fn is_alive(&self) -> bool {
        match &*self.way {
            Way::Socket { handle } => UnixStream::connect(reached_by(handle)).await.is_ok(),
            Way::Relay { .. } => self.client.alive().await.is_ok(),
        }
    }
}

/// The kernel follows this to what was opened, and to nothing else.
fn reached_by(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn doorway(sandbox: &Path) -> SharedDoor {
        let us = Identity {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        SharedDoor::make(sandbox, us).unwrap()
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
    #[tokio::test]
    async fn an_executor_that_has_ended_is_not_taken_for_alive() {
        let place = tempfile::tempdir().unwrap();
        let doorway = doorway(place.path());
        let listener = UnixListener::bind(doorway.path.join(SOCKET)).unwrap();
        let link = doorway.open(KEY).unwrap();
        assert!(link.is_alive().await);
        drop(listener);
        assert!(!link.is_alive().await);
    }
}
