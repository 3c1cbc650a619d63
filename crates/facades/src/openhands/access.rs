//! Who may use what: keys of the server for the remote runtime API, keys of single sessions for
//! what runs in them.

use std::{fmt, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderValue, request::Parts};
use serde_json::{Value, json};
use sha2::Sha256;
use zareba_eventlog::{DocumentName, EventLog, Expected, LogError};
use zareba_session::{Owner, SessionId, SessionInfo};
use zareba_wire::BoxFuture;

/// The header with the key of one session.
const SESSION_KEY: &str = "x-session-api-key";
/// What our session keys begin with, so that people and scanners know one when they see it.
const PREFIX: &str = "zrs_";
/// Where the secret is kept from which session keys are made.
const SECRET: (&str, &str) = ("openhands-secret", "session-keys");

/// Knows the server's keys; the server implements it.
pub trait KeyCheck: Send + Sync {
    /// Whose key is in the head of a request, which also says where it comes from. It counts wrong
    /// ones.
    fn principal<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Denied>>;
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of the key's holder.
    pub owner: Owner,
    /// What the key allows.
    pub rights: Rights,
    /// The one session that the key is for; `None` is all of the owner's.
    pub session: Option<SessionId>,
    /// How many sessions of the owner there may be at once; `None` has only the server's limits.
    pub sessions_max: Option<usize>,
}

/// What a key allows; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// To look.
    Read,
    /// To make, use and end sessions of its owner.
    Use,
    /// The same for sessions of everyone.
    Administer,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no key, or a wrong one.
    #[error("Invalid API Key")]
    WrongKey,
    /// Keys cannot be looked up now.
    #[error("keys cannot be read now, try again later")]
    Unavailable,
    /// There were too many wrong ones, or too many requests.
    #[error("too many requests, try again later")]
    TooMany {
        /// When to try again.
        retry_after: Duration,
    },
}

impl Principal {
    /// Whether a session is this one's to use. To others it does not exist.
    pub(super) fn may_use(&self, session: &SessionInfo) -> bool {
        let is_bound_elsewhere = self.session.as_ref().is_some_and(|id| *id != session.id);
        let is_owner = self.owner == session.owner;
        !is_bound_elsewhere && (is_owner || self.rights == Rights::Administer)
    }
}

/// Makes and knows the keys of single sessions. They are derived from one secret and not stored,
/// because clients ask for them again and again.
#[derive(Clone)]
pub struct SessionKeys {
    secret: [u8; 32],
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionKeys(..)")
    }
}

impl SessionKeys {
    /// Takes a secret over.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// Takes the secret that servers share through their log, and makes it when there is none.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub async fn of_log(log: &EventLog) -> Result<Self, LogError> {
        if let Some(found) = Self::stored(log).await? {
            return Ok(found);
        }
        let secret: [u8; 32] = rand::random();
        let value = json!({ "secret": BASE64_URL_SAFE_NO_PAD.encode(secret) });
        match log.store().put(document(), value, Expected::Absent).await {
            Ok(_) => Ok(Self::new(secret)),
            // Another server was faster, and its secret counts.
            Err(conflict @ LogError::Conflict { .. }) => Self::stored(log).await?.ok_or(conflict),
            Err(error) => Err(error),
        }
    }

    async fn stored(log: &EventLog) -> Result<Option<Self>, LogError> {
        let document = log.store().get(document()).await?;
        Ok(document.and_then(|document| secret_in(&document.value)))
    }

    /// The key of a session.
    pub fn key_of(&self, session: &SessionId) -> String {
        let code = self.code(session).finalize().into_bytes();
        format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(code))
    }

    /// Whether the headers of a request have the key of a session. Takes the same time whatever
    /// they have.
    pub(super) fn admits(&self, session: &SessionId, headers: &HeaderMap) -> bool {
        let offered = headers.get(SESSION_KEY).map(HeaderValue::as_bytes);
        let offered = offered.and_then(|key| key.strip_prefix(PREFIX.as_bytes()));
        let code = offered.and_then(|code| BASE64_URL_SAFE_NO_PAD.decode(code).ok());
        let code = code.unwrap_or_default();
        self.code(session).verify_slice(&code).is_ok()
    }

    fn code(&self, session: &SessionId) -> Hmac<Sha256> {
        // As long as a block of the hash: what a shorter key is filled up to.
        let mut key = [0; 64];
        key[..self.secret.len()].copy_from_slice(&self.secret);
        let mut code = Hmac::<Sha256>::new(&key.into());
        code.update(b"openhands session ");
        code.update(session.as_str().as_bytes());
        code
    }
}

fn document() -> DocumentName {
    let (kind, name) = SECRET;
    DocumentName {
        kind,
        name: name.to_owned(),
    }
}

fn secret_in(value: &Value) -> Option<SessionKeys> {
    let text = value.get("secret")?.as_str()?;
    let secret = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(SessionKeys::new(secret.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(SESSION_KEY, HeaderValue::from_str(key).unwrap());
        headers
    }

    #[test]
    fn a_key_opens_its_own_session_and_no_other() {
        let keys = SessionKeys::new([7; 32]);
        let (one, two) = (
            SessionId::new("one").unwrap(),
            SessionId::new("two").unwrap(),
        );
        let key = keys.key_of(&one);
        assert!(keys.admits(&one, &headers(&key)));
        assert!(!keys.admits(&two, &headers(&key)));
        assert!(!SessionKeys::new([8; 32]).admits(&one, &headers(&key)));
        for wrong in ["", "zrs_", &key[..key.len() - 1], &key.replace("zrs_", "")] {
            assert!(!keys.admits(&one, &headers(wrong)), "{wrong:?}");
        }
        assert!(!keys.admits(&one, &HeaderMap::new()));
    }

    #[test]
    fn the_secret_never_shows() {
        assert_eq!(
            format!("{:?}", SessionKeys::new([7; 32])),
            "SessionKeys(..)"
        );
    }
}
