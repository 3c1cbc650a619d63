//! Who asks: from headers to a [`Principal`], and what that may do.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use zareba_api::{Access, ErrorCode, Key, KeyQuota, KeyScope, SURFACE};
use zareba_protocol::SessionId;
use zareba_session::{Owner, Requester, RequesterScope, Session, SessionInfo, Surface, own_id};
use zareba_wire::serving::WrongKeys;

use crate::{Keys, error::ApiError, telemetry::Telemetry, usage::Usage};

/// Headers that may carry a key, in the order in which they are looked at.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "x-session-api-key"];

/// Whoever asks, once that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The name of the key.
    pub key: String,
    /// Whose sessions it is for.
    pub owner: Owner,
    /// What it allows.
    pub scope: KeyScope,
    /// The only session that it is for.
    pub session: Option<SessionId>,
    /// How much may be used.
    pub quota: KeyQuota,
    /// When the key ends.
    pub expires: Option<jiff::Timestamp>,
    /// Through what the client says that it is used, for the log; it decides nothing.
    pub claimed: Option<Surface>,
}

impl Principal {
    /// It as the log of a session names it.
    pub(crate) fn requester(&self, surface: Surface) -> Requester {
        Requester {
            owner: self.owner.clone(),
            key: Some(self.key.clone()),
            scope: Some(requester_scope(self.scope)),
            surface: match surface {
                Surface::Api => self.claimed.unwrap_or(Surface::Api),
                other => other,
            },
        }
    }

    /// The same with what the client says of itself. Only one word is known.
    pub(crate) fn claiming(self, headers: &HeaderMap) -> Self {
        let is_mcp = |value: &HeaderValue| value == Surface::Mcp.as_str();
        let claimed = headers.get(SURFACE).filter(|value| is_mcp(value));
        Self {
            claimed: claimed.map(|_| Surface::Mcp),
            ..self
        }
    }

    /// Whether it may know of a session: its own, and everyone's with the scope `admin`.
    pub fn may_see(&self, session: &SessionInfo) -> bool {
        let is_meant = self.session.as_ref().is_none_or(|only| *only == session.id);
        is_meant && (self.scope == KeyScope::Admin || self.owner == session.owner)
    }

    /// The ids that a name of a session can mean: that of the owner's own session of that name, and the
    /// name itself. Administrators name sessions by their ids.
    pub(crate) fn ids_of(&self, name: &SessionId) -> Result<Vec<SessionId>, ApiError> {
        if self.scope == KeyScope::Admin {
            return Ok(vec![name.clone()]);
        }
        Ok(vec![own_id(&self.owner, name)?, name.clone()])
    }

    /// What a session is called in answers: by its owner's name for it, and by its id for administrators.
    pub(crate) fn name_of<'a>(&self, session: &'a Session) -> &'a SessionId {
        let own = session.name().filter(|_| self.scope != KeyScope::Admin);
        own.unwrap_or_else(|| session.id())
    }

    /// Whether its scope is enough for an access class.
    pub fn may(&self, access: Access) -> bool {
        let needed = match access {
            Access::Public | Access::Capability => return true,
            Access::Read | Access::ReadOrTicket => KeyScope::Read,
            Access::Session | Access::SessionOrTicket => KeyScope::Session,
            Access::Admin => KeyScope::Admin,
        };
        self.scope >= needed
    }

    /// What is about everyone is not for keys of one session.
    pub(crate) fn require_unbound(&self) -> Result<(), ApiError> {
        match &self.session {
            None => Ok(()),
            Some(session) => Err(ApiError::forbidden(format!(
                "this key is for the session `{session}` only"
            ))),
        }
    }
}

impl From<Key> for Principal {
    fn from(key: Key) -> Self {
        Self {
            key: key.id,
            owner: Owner(key.owner),
            scope: key.scope,
            session: key.session,
            quota: key.quota,
            expires: key.expires,
            claimed: None,
        }
    }
}

/// A scope in the words of the log.
pub(crate) const fn requester_scope(scope: KeyScope) -> RequesterScope {
    match scope {
        KeyScope::Read => RequesterScope::Read,
        KeyScope::Session => RequesterScope::Session,
        KeyScope::Admin => RequesterScope::Admin,
    }
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// There is no key, or not a valid one.
    Unauthorized,
    /// There were too many wrong ones.
    TooManyWrong {
        /// How long to wait.
        wait: std::time::Duration,
    },
    /// Keys cannot be read now.
    Unavailable,
}

/// Checks keys. Cloning it gives another handle; extensions use it for routes whose answers to
/// strangers they must write themselves.
#[derive(Clone, Debug)]
pub struct Authenticator {
    keys: Keys,
    telemetry: Telemetry,
    wrong: Arc<WrongKeys>,
    usage: Arc<Usage>,
}

impl Authenticator {
    pub(crate) fn new(keys: Keys, telemetry: Telemetry, usage: Usage) -> Self {
        Self {
            keys,
            telemetry,
            wrong: Arc::default(),
            usage: Arc::new(usage),
        }
    }

    /// Whoever has the key that a request shows: `Authorization: Bearer`, `X-API-Key` or
    /// `X-Session-API-Key`. Right keys are let in however many wrong ones there were.
    ///
    /// # Errors
    /// When there is no valid key, or that cannot be known now.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        source: IpAddr,
    ) -> Result<Principal, Denied> {
        let found = match offered(headers) {
            Some(secret) => self.keys.find(secret).await,
            None => Ok(None),
        };
        match found {
            Ok(Some(key)) => Ok(key.into()),
            Ok(None) => Err(self.wrong_key(source)),
            Err(error) => {
                tracing::error!(error = crate::error::chain(&error), "cannot read keys");
                Err(Denied::Unavailable)
            }
        }
    }

    /// Counts a wrong key or ticket and says what its sender is told.
    pub(crate) fn wrong_key(&self, source: IpAddr) -> Denied {
        self.telemetry.wrong_key();
        match self.wrong.count(source) {
            Ok(()) => {
                tracing::info!(%source, "a request without a valid key");
                Denied::Unauthorized
            }
            Err(wait) => Denied::TooManyWrong { wait },
        }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// What owners share, whichever API they use.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }
}

/// A header that comes twice is nobody's key.
fn offered(headers: &HeaderMap) -> Option<&str> {
    let single = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    };
    if headers.contains_key(AUTHORIZATION) {
        let (scheme, secret) = single(AUTHORIZATION.as_str())?.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| secret.trim_start());
    }
    let name = KEY_HEADERS
        .into_iter()
        .find(|name| headers.contains_key(*name))?;
    single(name)
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthorized => Self::new(
                ErrorCode::Unauthorized,
                "there is no valid key in the request",
            )
            .with_hint("send it as `Authorization: Bearer <key>`"),
            Denied::TooManyWrong { wait } => {
                let message = "there were too many requests without a valid key";
                Self::new(ErrorCode::TooManyRequests, message).retry_after(wait)
            }
            Denied::Unavailable => {
                Self::new(ErrorCode::BackendUnavailable, "keys cannot be read now")
                    .with_hint("repeat the request in a moment")
            }
        }
    }
}
