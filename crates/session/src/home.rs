//! What a server keeps for itself, beside its log: its name among servers, and the secrets of its
//! sessions.
//!
//! The name lets a server that was killed know its own sessions again at once, while others wait.
//! The secrets are what must be hidden: without them a server that takes up a session could not
//! tell what to hide. Only the user that the server runs as can read them, and they go with the
//! session.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_protocol::SessionId;

use crate::Secret;

/// The file with the server's name, which is locked as long as a server uses the directory.
const NAME_FILE: &str = "server-id";
/// The directory with a file of secrets for each session that has some.
const SECRETS: &str = "secrets";
/// The digits of a name: 128 random bits.
const NAME_DIGITS: usize = 32;
/// Far more than the secrets of one session may have, also as JSON.
const SECRETS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Why a directory cannot be a server's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// Another server uses it.
    #[error(
        "the state directory `{}` is in use by another server; stop that one, or use another directory",
        directory.display()
    )]
    InUse {
        /// Which directory.
        directory: PathBuf,
    },
    /// It cannot be made, read or locked.
    #[error("cannot use the state directory `{}`", directory.display())]
    Io {
        /// Which directory.
        directory: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// A directory that one server has for itself as long as this lives. Cloning it gives another
/// handle.
#[derive(Clone, Debug)]
pub struct Home {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    /// Locked.
    name_file: File,
}

impl Home {
    /// Takes a directory, which is made if it is not there, for one server alone.
    ///
    /// # Errors
    /// When another server has it, or it cannot be used.
    pub async fn open(directory: &Path) -> Result<Self, HomeError> {
        let (path, failed) = (directory.to_owned(), directory.to_owned());
        let opened = tokio::task::spawn_blocking(move || Self::open_now(&path)).await;
        let opened = opened.map_err(io::Error::other);
        opened.unwrap_or_else(|source| {
            let directory = failed;
            Err(HomeError::Io { directory, source })
        })
    }

    fn open_now(directory: &Path) -> Result<Self, HomeError> {
        let failed = |source| HomeError::Io {
            directory: directory.to_owned(),
            source,
        };
        let secrets = directory.join(SECRETS);
        make_private(&secrets).map_err(failed)?;
        let name_file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(directory.join(NAME_FILE))
            .map_err(failed)?;
        match name_file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let directory = directory.to_owned();
                return Err(HomeError::InUse { directory });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let inner = Inner {
            directory: directory.to_owned(),
            name_file,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Lets the next server have the directory, though handles of this one may be left.
    pub(crate) fn release(&self) {
        if let Err(error) = self.inner.name_file.unlock() {
            tracing::warn!(%error, "the state directory stays locked for a moment");
        }
    }

    /// The server's name of before, if it had one.
    pub(crate) async fn name(&self) -> Option<String> {
        let read = self.blocking(|inner| {
            let mut digits = [0; NAME_DIGITS];
            inner.name_file.read_exact_at(&mut digits, 0)?;
            Ok(digits)
        });
        let name = String::from_utf8(read.await.ok()?.to_vec()).ok()?;
        let is_name = name.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_name.then_some(name)
    }

    /// Gives the server a name. One that cannot be kept is good for this life only.
    pub(crate) async fn set_name(&self, name: &str) {
        let line = format!("{name}\n");
        let written = self.blocking(move |inner| {
            // In place, because the lock is on this file: every name has the same length.
            inner.name_file.write_all_at(line.as_bytes(), 0)?;
            inner.name_file.sync_data()
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "the server's name cannot be kept: should it be killed, its sessions wait for a while");
        }
    }

    /// Keeps the secrets of a session, in place of what is there.
    pub(crate) async fn keep(
        &self,
        session: &SessionId,
        secrets: &[(String, Secret)],
    ) -> io::Result<()> {
        let values: Vec<&str> = secrets
            .iter()
            .map(|(_, secret)| secret.0.as_str())
            .collect();
        let bytes = serde_json::to_vec(&values)?;
        let name = session.to_string();
        self.blocking(move |inner| {
            // No session has a dot in its name.
            let beside = inner.secrets(&format!("{name}.new"));
            // Never in the place of others: a name means one session, also one that is not known yet.
            let written = write_private(&beside, &bytes)
                .and_then(|()| fs::hard_link(&beside, inner.secrets(&name)));
            let _ = fs::remove_file(&beside);
            written
        })
        .await
    }

    /// The secrets of a session, if they were kept here.
    pub(crate) async fn recall(&self, session: &SessionId) -> io::Result<Option<Vec<Secret>>> {
        let name = session.to_string();
        self.blocking(move |inner| {
            let file = match File::open(inner.secrets(&name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                file => file?,
            };
            let mut bytes = Vec::new();
            file.take(SECRETS_BYTES_MAX).read_to_end(&mut bytes)?;
            let values: Vec<String> = serde_json::from_slice(&bytes)?;
            Ok(Some(values.into_iter().map(Secret).collect()))
        })
        .await
    }

    /// Removes the secrets of a session.
    pub(crate) async fn forget(&self, session: &SessionId) {
        let name = session.to_string();
        let removed = self.blocking(move |inner| match fs::remove_file(inner.secrets(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        });
        if let Err(error) = removed.await {
            tracing::error!(%session, %error, "the secrets of a session that has ended cannot be removed");
        }
    }

    /// The sessions whose secrets are here. What a write that was cut off has left is removed.
    pub(crate) async fn kept(&self) -> io::Result<Vec<SessionId>> {
        self.blocking(|inner| {
            let mut kept = Vec::new();
            for entry in fs::read_dir(inner.directory.join(SECRETS))? {
                let entry = entry?;
                let name = entry.file_name().into_string();
                match name.ok().and_then(|name| SessionId::new(name).ok()) {
                    Some(session) => kept.push(session),
                    None => fs::remove_file(entry.path())?,
                }
            }
            Ok(kept)
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || work(&inner)).await?
    }
}

impl Inner {
    fn secrets(&self, name: &str) -> PathBuf {
        self.directory.join(SECRETS).join(name)
    }
}

fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)
}

/// Writes a new file that only its owner can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn session() -> SessionId {
        SessionId::new("s").unwrap()
    }

    #[tokio::test]
    async fn a_name_is_kept_and_the_directory_is_for_one_server() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(directory.path()).await.unwrap();
        assert_eq!(home.name().await, None);
        let name = "0123456789abcdef".repeat(2);
        home.set_name(&name).await;
        let second = Home::open(directory.path()).await.unwrap_err();
        assert!(matches!(second, HomeError::InUse { .. }), "{second}");
        drop(home);
        let home = Home::open(directory.path()).await.unwrap();
        assert_eq!(home.name().await, Some(name));
    }

    #[tokio::test]
    async fn el_9_secrets_never_take_the_place_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(directory.path()).await.unwrap();
        let secrets = |text: &str| [("TOKEN".to_owned(), Secret(text.to_owned()))];
        home.keep(&session(), &secrets("first")).await.unwrap();
        let refused = home.keep(&session(), &secrets("second")).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let kept = home.recall(&session()).await.unwrap();
        assert_eq!(kept, Some(vec![Secret("first".to_owned())]));
        let folder = directory.path().join(SECRETS);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn el_9_secrets_are_for_their_owner_only_and_go_with_the_session() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(directory.path()).await.unwrap();
        assert_eq!(home.recall(&session()).await.unwrap(), None);
        let secret = Secret("se\"cret\n".to_owned());
        let secrets = [("TOKEN".to_owned(), secret.clone())];
        home.keep(&session(), &secrets).await.unwrap();
        let folder = directory.path().join(SECRETS);
        for (path, mode) in [(folder.join("s"), 0o600), (folder.clone(), 0o700)] {
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}", path.display());
        }
        fs::write(folder.join("cut.new"), "[").unwrap();
        assert_eq!(home.kept().await.unwrap(), [session()]);
        assert_eq!(home.recall(&session()).await.unwrap(), Some(vec![secret]));
        home.forget(&session()).await;
        home.forget(&session()).await;
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}
