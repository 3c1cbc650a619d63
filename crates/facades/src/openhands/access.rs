//! Who may use what: keys of the server for the remote runtime API, keys of single sessions for
//! what runs in them.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, request::Parts};
use serde_json::{Value, json};
use sha2::Sha256;
use zareba_eventlog::{DocumentName, EventLog, Expected, LogError};
use zareba_session::{
    Owner, PermittedParts, PermittedReach, RequestMaxima, Requester, RequesterScope, SessionId,
    SessionInfo, Surface,
};
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

    /// Whoever has the key of this name, if it is valid now. Keys of sessions are as good as the
    /// key that they were given out for.
    fn holder<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Principal, Denied>>;

    /// A place for a request of somebody, to be kept while it is open. It is left in the
    /// extensions of the answer, so that the server keeps it until that is sent.
    ///
    /// # Errors
    /// When they have too many open.
    fn open(&self, principal: &Principal) -> Result<Reserved, Denied>;

    /// Room for a body, to be kept until nothing of it is needed any more.
    ///
    /// # Errors
    /// When there is no more room, for them or for anybody.
    fn take_body(&self, principal: &Principal, bytes: usize) -> Result<Reserved, Denied>;

    /// Counts an action.
    ///
    /// # Errors
    /// When these were too many.
    fn count_action(&self, principal: &Principal) -> Result<(), Denied>;
}

/// Something that is given back when nobody holds it any more.
#[derive(Clone)]
pub struct Reserved {
    _held: Arc<dyn Any + Send + Sync>,
}

impl Reserved {
    /// Holds something.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        let held = Arc::new(held);
        Self { _held: held }
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reserved(..)")
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of the key, without an underscore.
    pub key: String,
    /// The name of the key's holder.
    pub owner: Owner,
    /// What the key allows.
    pub rights: Rights,
    /// The one session that the key is for; `None` is all of the owner's.
    pub session: Option<SessionId>,
    /// How many sessions of the owner there may be at once; `None` has only the server's limits.
    pub sessions_max: Option<usize>,
    /// The most that a session may ask for.
    pub maxima: RequestMaxima,
    /// What a session may be made of.
    pub parts: PermittedParts,
    /// What a session may reach.
    pub reach: PermittedReach,
    /// How long a session may live.
    pub life_max: Option<std::time::Duration>,
    /// How many actions of the owner there may be in a minute; `None` is any number.
    pub actions_per_minute: Option<u32>,
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
    /// It as the log of a session names it.
    pub(super) fn requester(&self) -> Requester {
        Requester {
            owner: self.owner.clone(),
            key: Some(self.key.clone()),
            scope: Some(match self.rights {
                Rights::Read => RequesterScope::Read,
                Rights::Use => RequesterScope::Session,
                Rights::Administer => RequesterScope::Admin,
            }),
            surface: Surface::OpenHands,
        }
    }

    /// Whether a session is this one's to use. To others it does not exist.
    pub(super) fn may_use(&self, session: &SessionInfo) -> bool {
        let is_bound_elsewhere = self.session.as_ref().is_some_and(|id| *id != session.id);
        let is_owner = self.owner == session.owner;
        !is_bound_elsewhere && (is_owner || self.rights == Rights::Administer)
    }
}

/// Makes and knows the keys of single sessions. They are derived from one secret and not stored,
/// because clients ask for them again and again. Each names the key that it was given out for, and
/// is for one session and not for a later one of the same name.
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

    /// The key of a session for whoever has the server's key of the name `holder`.
    pub fn key_of(&self, session: &SessionInfo, holder: &str) -> String {
        let code = self.code(session, holder).finalize().into_bytes();
        let code = BASE64_URL_SAFE_NO_PAD.encode(code);
        format!("{PREFIX}{holder}_{code}")
    }

    /// Whether a key is that of a session. Takes the same time whatever its code is.
    pub(super) fn admits(&self, session: &SessionInfo, offered: &Offered<'_>) -> bool {
        let code = BASE64_URL_SAFE_NO_PAD.decode(offered.code);
        let code = code.unwrap_or_default();
        self.code(session, offered.holder)
            .verify_slice(&code)
            .is_ok()
    }

    fn code(&self, session: &SessionInfo, holder: &str) -> Hmac<Sha256> {
        // As long as a block of the hash: what a shorter key is filled up to.
        let mut key = [0; 64];
        key[..self.secret.len()].copy_from_slice(&self.secret);
        let mut code = Hmac::<Sha256>::new(&key.into());
        code.update(b"openhands session ");
        let created = session.created.to_string();
        for part in [session.id.as_str(), &session.owner.0, &created, holder] {
            // Two lists of parts are never the same text.
            code.update(&(part.len() as u64).to_le_bytes());
            code.update(part.as_bytes());
        }
        code
    }
}

/// The key of a session as a request shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered<'a> {
    /// The name of the server's key that it was given out for.
    pub(super) holder: &'a str,
    code: &'a str,
}

impl<'a> Offered<'a> {
    pub(super) fn by(headers: &'a HeaderMap) -> Option<Self> {
        let key = headers.get(SESSION_KEY)?.to_str().ok()?;
        let (holder, code) = key.strip_prefix(PREFIX)?.split_once('_')?;
        Some(Self { holder, code })
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
    use http::HeaderValue;
    use jiff::Timestamp;
    use zareba_protocol::RuntimeStatus;
    use zareba_session::{SessionLimits, SessionState};

    use super::*;

    fn session(name: &str, owner: &str, created: i64) -> SessionInfo {
        SessionInfo {
            id: SessionId::new(name).unwrap(),
            name: None,
            owner: Owner(owner.to_owned()),
            runtime: "cli".to_owned(),
            image: None,
            state: SessionState::Ready,
            status: RuntimeStatus::Ready,
            message: String::new(),
            labels: Default::default(),
            workspace: "/w".to_owned(),
            created: Timestamp::from_second(created).unwrap(),
            last_active: Timestamp::now(),
            limits: SessionLimits::default(),
            grant: zareba_runtime::Grant::default(),
            next_event: 0,
        }
    }

    fn admits(keys: &SessionKeys, session: &SessionInfo, key: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(SESSION_KEY, HeaderValue::from_str(key).unwrap());
        Offered::by(&headers).is_some_and(|offered| keys.admits(session, &offered))
    }

    #[test]
    fn a_key_opens_its_own_session_and_no_other() {
        let keys = SessionKeys::new([7; 32]);
        let (one, two) = (session("one", "ann", 1), session("two", "ann", 1));
        let key = keys.key_of(&one, "k1");
        assert!(admits(&keys, &one, &key));
        assert!(!admits(&keys, &two, &key));
        assert!(!admits(&SessionKeys::new([8; 32]), &one, &key));
        let wrong = [
            "",
            "zrs_",
            "zrs_k1_",
            &key[..key.len() - 1],
            &key.replace("zrs_", ""),
            &key.replace("k1", "k2"),
        ];
        for wrong in wrong {
            assert!(!admits(&keys, &one, wrong), "{wrong:?}");
        }
    }

    /// HS-8, SN-4: what was right for a session is wrong for a later one that has its name.
    #[test]
    fn a_key_does_not_open_a_later_session_of_the_same_name() {
        let keys = SessionKeys::new([7; 32]);
        let key = keys.key_of(&session("ci", "ann", 1), "k1");
        assert!(!admits(&keys, &session("ci", "ben", 1), &key));
        assert!(!admits(&keys, &session("ci", "ann", 2), &key));
    }

    #[test]
    fn the_secret_never_shows() {
        assert_eq!(
            format!("{:?}", SessionKeys::new([7; 32])),
            "SessionKeys(..)"
        );
    }
}
