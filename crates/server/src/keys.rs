//! [`Keys`]: who may use the server, kept as documents of the event log.
//!
//! A key is `zrb_<id>_<secret>`. The id finds the document, the SHA-256 of the whole is compared
//! with the stored one in constant time, and the secret has 256 random bits and is kept nowhere.
//! What was read is believed for [`FRESH`]; a change made here counts at once, one made by another
//! server on the same database within that time.

mod stored;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::sync::Semaphore;
use zareba_api::{CreateKey, CreatedKey, Key, KeyQuota, KeyScope, SecretText};
use zareba_eventlog::{DocumentName, EventLog, Expected, LogError};
use zareba_protocol::SessionId;

use stored::{Stored, Token};

/// How long a document is believed without being read again.
const FRESH: Duration = Duration::from_secs(5);
/// Keys that there may be: each is a document, and a list of them is one answer.
const KEYS_MAX: usize = 10_000;
/// Keys of one owner, who may make some for single sessions.
const OWNER_KEYS_MAX: usize = 1000;
/// Documents that are looked up at once for keys that are not known here.
const LOOKUPS_MAX: usize = 4;
/// Who owns the first key.
const FIRST_OWNER: &str = "admin";
/// What the name of an owner may have in characters.
const OWNER_LENGTH_MAX: usize = 64;

/// Networks or hosts that one key may list, and what each of them may have in bytes.
const LISTED_MAX: usize = 64;
const TEXT_LENGTH_MAX: usize = 255;

const KIND: &str = "key";

/// All keys of a log. Cloning it gives another handle.
#[derive(Clone)]
pub struct Keys {
    shared: Arc<Shared>,
}

struct Shared {
    log: EventLog,
    known: Mutex<HashMap<String, Known>>,
    lookups: Semaphore,
}

/// A document as it was when it was read.
#[derive(Clone)]
struct Known {
    stored: Arc<Stored>,
    read: Instant,
}

/// Why a key could not be made, found or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The request makes no sense.
    #[error("{message}")]
    Invalid {
        /// What was wrong and what to do.
        message: String,
    },
    /// There is none with that name.
    #[error("there is no key `{key}`")]
    NotFound {
        /// Which key.
        key: String,
    },
    /// There are too many.
    #[error("there are {limit} keys already; remove some")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Keys {
    /// The keys of a log.
    pub fn new(log: EventLog) -> Self {
        Self {
            shared: Arc::new(Shared {
                log,
                known: Mutex::default(),
                lookups: Semaphore::new(LOOKUPS_MAX),
            }),
        }
    }

    /// Makes a key that may do everything, unless there is one.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub async fn create_first(&self) -> Result<Option<CreatedKey>, KeyError> {
        let is_admin = |key: &Key| key.scope == KeyScope::Admin && key.session.is_none();
        if self.list().await?.iter().any(is_admin) {
            return Ok(None);
        }
        let new = CreateKey {
            owner: FIRST_OWNER.to_owned(),
            scope: KeyScope::Admin,
            session: None,
            expires_in: None,
            quota: KeyQuota::default(),
        };
        self.create(new).await.map(Some)
    }

    /// Makes a key. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// When the request makes no sense, there are too many or it cannot be written.
    pub async fn create(&self, new: CreateKey) -> Result<CreatedKey, KeyError> {
        check(&new)?;
        self.make_room(&new.owner).await?;
        let token = Token::random();
        let created = Timestamp::now();
        let expires = new.expires_in.map(|life| {
            let life = life.duration();
            created.saturating_add(life).unwrap_or(Timestamp::MAX)
        });
        let key = Key {
            id: token.id().to_owned(),
            owner: new.owner,
            scope: new.scope,
            session: new.session,
            created,
            expires,
            quota: new.quota,
        };
        let stored = Stored::new(key.clone(), &token);
        let store = self.shared.log.store();
        let name = document(token.id());
        store.put(name, stored.to_value(), Expected::Absent).await?;
        let secret = SecretText(token.into_text());
        Ok(CreatedKey { key, secret })
    }

    /// Makes sure that there may be another key of an owner. Those that have expired are removed.
    async fn make_room(&self, owner: &str) -> Result<(), KeyError> {
        let now = Timestamp::now();
        let (expired, valid): (Vec<Key>, Vec<Key>) = self
            .list()
            .await?
            .into_iter()
            .partition(|key| key.expires.is_some_and(|expires| expires <= now));
        for key in expired {
            match self.remove(&key.id).await {
                // Another request was faster.
                Ok(()) | Err(KeyError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        require_room(&valid, owner)
    }

    /// All keys, by name, without their secrets.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn list(&self) -> Result<Vec<Key>, KeyError> {
        let documents = self.shared.log.store().list(KIND).await?;
        let keys = documents.into_iter().filter_map(|document| {
            let stored = Stored::from_value(document.value)?;
            Some(stored.key)
        });
        Ok(keys.collect())
    }

    /// Removes a key; it is not valid any more from now on.
    ///
    /// # Errors
    /// When there is none, or the log cannot be written.
    pub async fn remove(&self, key: &str) -> Result<(), KeyError> {
        let name = document(key);
        let store = self.shared.log.store();
        if store.get(name.clone()).await?.is_none() {
            let key = key.chars().take(64).collect();
            return Err(KeyError::NotFound { key });
        }
        store.delete(name).await?;
        self.known().remove(key);
        Ok(())
    }

    /// Removes the keys that were for one session only.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub async fn remove_of_session(&self, session: &SessionId) -> Result<(), KeyError> {
        for key in self.list().await? {
            if key.session.as_ref() == Some(session) {
                self.remove(&key.id).await?;
            }
        }
        Ok(())
    }

    /// The key that a secret belongs to, if it is valid now.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn find(&self, secret: &str) -> Result<Option<Key>, LogError> {
        let Some(token) = Token::parse(secret) else {
            return Ok(None);
        };
        let Some(stored) = self.look_up(token.id()).await? else {
            return Ok(None);
        };
        Ok(stored.admits(&token).then(|| stored.key.clone()))
    }

    /// Whether a key that was valid still is.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn is_valid(&self, key: &str) -> Result<bool, LogError> {
        Ok(self.current(key).await?.is_some())
    }

    /// The key of a name, if it is valid now. For those who were let in with it before: a name is
    /// no secret.
    pub(crate) async fn current(&self, key: &str) -> Result<Option<Key>, LogError> {
        if !Token::is_id(key) {
            return Ok(None);
        }
        let stored = self.look_up(key).await?;
        let stored = stored.filter(|stored| stored.is_current());
        Ok(stored.map(|stored| stored.key.clone()))
    }

    async fn look_up(&self, id: &str) -> Result<Option<Arc<Stored>>, LogError> {
        let known = self.known().get(id).cloned();
        if let Some(known) = known
            && known.read.elapsed() < FRESH
        {
            return Ok(Some(known.stored));
        }
        // Wrong keys must not keep the database busy; right ones wait their turn.
        let _turn = self.shared.lookups.acquire().await;
        let read = Instant::now();
        let document = self.shared.log.store().get(document(id)).await?;
        let stored = document
            .and_then(|document| Stored::from_value(document.value))
            .map(Arc::new);
        let mut known = self.known();
        match &stored {
            // Only what exists is remembered, so that this never grows beyond the keys there are.
            Some(stored) => {
                let stored = Arc::clone(stored);
                known.insert(id.to_owned(), Known { stored, read });
            }
            None => {
                known.remove(id);
            }
        }
        Ok(stored)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        // Entries are whole at any time, so that a panic elsewhere has spoilt nothing.
        let known = self.shared.known.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Keys").finish_non_exhaustive()
    }
}

fn document(id: &str) -> DocumentName {
    DocumentName {
        kind: KIND,
        name: id.to_owned(),
    }
}

fn require_room(valid: &[Key], owner: &str) -> Result<(), KeyError> {
    let of_owner = valid.iter().filter(|key| key.owner == owner);
    for (found, limit) in [(of_owner.count(), OWNER_KEYS_MAX), (valid.len(), KEYS_MAX)] {
        if found >= limit {
            return Err(KeyError::TooMany { limit });
        }
    }
    Ok(())
}

fn check(new: &CreateKey) -> Result<(), KeyError> {
    let is_name = (1..=OWNER_LENGTH_MAX).contains(&new.owner.len())
        && new
            .owner
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if !is_name {
        let message = format!(
            "an owner's name has 1 to {OWNER_LENGTH_MAX} letters, digits, `-`, `_`, `.` and `@`"
        );
        return Err(KeyError::Invalid { message });
    }
    for (field, texts) in [
        ("networks", &new.quota.networks),
        ("hosts", &new.quota.hosts),
        ("runtimes", &new.quota.runtimes),
        ("images", &new.quota.images),
        ("workspaces", &new.quota.workspaces),
    ] {
        let texts = texts.as_deref().unwrap_or_default();
        let is_text = |text: &String| (1..=TEXT_LENGTH_MAX).contains(&text.len());
        if texts.len() > LISTED_MAX || !texts.iter().all(is_text) {
            let message = format!(
                "`quota.{field}` has {LISTED_MAX} entries at most, each with 1 to {TEXT_LENGTH_MAX} bytes"
            );
            return Err(KeyError::Invalid { message });
        }
    }
    let workspaces = new.quota.workspaces.iter().flatten();
    if let Some(relative) = workspaces.into_iter().find(|path| !path.starts_with('/')) {
        let shown = relative.escape_debug();
        let message = format!("`quota.workspaces` has `{shown}`, which does not begin with `/`");
        return Err(KeyError::Invalid { message });
    }
    if new.scope == KeyScope::Admin && new.session.is_some() {
        let message = "a key for one session cannot have the scope `admin`; use `session`";
        let message = message.to_owned();
        return Err(KeyError::Invalid { message });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_cannot_have_all_keys() {
        let key = |owner: &str| Key {
            id: String::new(),
            owner: owner.to_owned(),
            scope: KeyScope::Session,
            session: None,
            created: Timestamp::UNIX_EPOCH,
            expires: None,
            quota: KeyQuota::default(),
        };
        let mut keys = vec![key("ann"); OWNER_KEYS_MAX - 1];
        assert!(require_room(&keys, "ann").is_ok());
        keys.push(key("ann"));
        assert!(require_room(&keys, "ann").is_err());
        assert!(require_room(&keys, "ben").is_ok());
    }
}
