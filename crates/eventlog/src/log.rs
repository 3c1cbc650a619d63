//! [`EventLog`]: what the rest of the program uses of a log.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use zareba_protocol::SessionId;

use crate::{
    Durability, LogError, Options, Recovery, Retention, Store, Subscription, Usage, Verified,
    postgres::Postgres, sqlite::Sqlite, store::Rows, verify,
};

/// A log of many sessions. Cloning it gives another handle to the same log.
///
/// [`Store::close`] ends it in order. Without that it ends when the last handle is gone, a moment
/// later, and the next to open it looks at its last records once more.
#[derive(Clone)]
pub struct EventLog {
    store: Arc<dyn Rows>,
    durability: Durability,
    is_shared: bool,
}

impl EventLog {
    /// Opens, or makes, the log in one SQLite file. When there is not even the space to open one
    /// that is there, it can be read, whatever would write fails with [`LogError::NoSpace`], and
    /// it becomes writable by itself ([`Store::health`] tells).
    ///
    /// # Errors
    /// When another server writes to it, or it cannot be used.
    pub async fn open_file(path: &Path, durability: Durability) -> Result<Self, LogError> {
        let options = Options {
            durability,
            ..Options::default()
        };
        Self::open_file_with(path, options).await
    }

    /// The same, with all that can be chosen.
    ///
    /// # Errors
    /// When another server writes to it, or it cannot be used.
    pub async fn open_file_with(path: &Path, options: Options) -> Result<Self, LogError> {
        Ok(Self {
            store: Arc::new(Sqlite::open(path, options).await?),
            durability: options.durability,
            is_shared: false,
        })
    }

    /// Opens the log in an SQLite file to read it, also while a server writes to it. Whatever
    /// would write fails with [`LogError::ReadOnly`], and a subscription sees only what was there
    /// when it began.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn open_file_to_read(path: &Path) -> Result<Self, LogError> {
        Ok(Self {
            store: Arc::new(Sqlite::open_to_read(path).await?),
            durability: Durability::default(),
            is_shared: false,
        })
    }

    /// Opens, or makes, the log in a PostgreSQL database that several servers share.
    ///
    /// # Errors
    /// When the database cannot be reached or used.
    pub async fn open_database(url: &str, durability: Durability) -> Result<Self, LogError> {
        let options = Options {
            durability,
            ..Options::default()
        };
        Self::open_database_with(url, options).await
    }

    /// The same, with all that can be chosen.
    ///
    /// # Errors
    /// When the database cannot be reached or used.
    pub async fn open_database_with(url: &str, options: Options) -> Result<Self, LogError> {
        Ok(Self {
            store: Arc::new(Postgres::open(url, options).await?),
            durability: options.durability,
            is_shared: true,
        })
    }

    /// The records and documents.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// What an acknowledged record survives.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Whether several servers may write to it at once. A file has one writer.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Records from a number on, those that are there and then those that come, without an end.
    pub fn subscribe(&self, session: SessionId, from: u64) -> Subscription {
        Subscription::new(self.clone(), session, from)
    }

    /// Checks a session's whole log: every number, digest and link.
    ///
    /// # Errors
    /// When the log cannot be read. Damage is no error: it is listed, all of it.
    pub async fn verify(&self, session: &SessionId) -> Result<Verified, LogError> {
        verify::verify(&self.store, session).await
    }

    /// What was found when the log was opened.
    pub fn recovery(&self) -> &Recovery {
        self.store.recovery()
    }

    /// What each session takes.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn usage(&self) -> Result<Vec<Usage>, LogError> {
        self.store.usage().await
    }

    /// Removes logs of closed sessions that are too old, or that take too much together. Returns
    /// whose.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub async fn retain(&self, policy: &Retention) -> Result<Vec<SessionId>, LogError> {
        let usages = self.usage().await?;
        let removed = policy.outdated(usages, Timestamp::now());
        for session in &removed {
            self.store.remove(session.clone()).await?;
        }
        Ok(removed)
    }

    pub(crate) fn rows(&self) -> &Arc<dyn Rows> {
        &self.store
    }
}

impl std::fmt::Debug for EventLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventLog").finish_non_exhaustive()
    }
}
