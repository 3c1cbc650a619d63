//! The ports that are shared, by the tokens of their addresses.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use zareba_api::ErrorCode;
use zareba_protocol::SessionId;
use zareba_session::Owner;

use crate::error::ApiError;

/// Ports of one session that may be shared at once.
const SESSION_SHARES_MAX: usize = 64;
/// Ports of one owner's sessions.
const OWNER_SHARES_MAX: usize = 1024;
/// Ports of all sessions.
const SHARES_MAX: usize = 16 * 1024;

/// What is shared. Not written down: after a restart nothing is shared.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    by_token: Mutex<HashMap<String, Share>>,
}

/// A shared port.
#[derive(Debug)]
struct Share {
    session: SessionId,
    port: u16,
    sharer: Sharer,
    /// Dropped when it is taken back, which ends what goes through it.
    held: watch::Sender<()>,
}

/// By whose right a port is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sharer {
    /// Whose session it is.
    pub(super) owner: Owner,
    /// The key that was used: what it has shared ends with it.
    pub(super) key: String,
}

/// A shared port as somebody uses it.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) session: SessionId,
    pub(super) port: u16,
    pub(super) sharer: Sharer,
    held: watch::Receiver<()>,
}

impl Visit {
    /// Ready when the port is shared no more.
    pub(super) async fn over(mut self) {
        while self.held.changed().await.is_ok() {}
    }
}

impl Shares {
    /// Shares a port, or finds the token under which it is; that is by the right of whoever asked
    /// last.
    pub(super) fn share(
        &self,
        session: &SessionId,
        port: u16,
        sharer: Sharer,
    ) -> Result<String, ApiError> {
        let mut shares = self.shares();
        let mut all = shares.iter_mut();
        let found = all.find(|(_, share)| share.session == *session && share.port == port);
        if let Some((token, share)) = found {
            share.sharer = sharer;
            return Ok(token.clone());
        }
        require_room(&shares, session, &sharer.owner)?;
        // Digits only, so that it is a name in a domain as well.
        let token = format!("{:032x}", rand::random::<u128>());
        let share = Share {
            session: session.clone(),
            port,
            sharer,
            held: watch::Sender::default(),
        };
        shares.insert(token.clone(), share);
        Ok(token)
    }

    /// Takes a port back.
    pub(super) fn unshare(&self, session: &SessionId, port: u16) -> Result<(), ApiError> {
        let mut shares = self.shares();
        let before = shares.len();
        shares.retain(|_, share| share.session != *session || share.port != port);
        if shares.len() == before {
            let message = format!("the port {port} is not shared");
            return Err(ApiError::new(ErrorCode::NotFound, message));
        }
        Ok(())
    }

    /// Takes all ports of a session back.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.shares().retain(|_, share| share.session != *session);
    }

    /// Takes all ports back that were shared by the right of a key.
    pub(crate) fn forget_key(&self, key: &str) {
        self.shares().retain(|_, share| share.sharer.key != key);
    }

    /// Ports of a session with their tokens.
    pub(super) fn of_session(&self, session: &SessionId) -> Vec<(u16, String)> {
        let shares = self.shares();
        let of_session = shares.iter().filter(|(_, share)| share.session == *session);
        of_session
            .map(|(token, share)| (share.port, token.clone()))
            .collect()
    }

    /// The port behind a token. It is found by its hash, so that how long that takes tells
    /// nothing of other tokens.
    pub(super) fn visit(&self, token: &str) -> Option<Visit> {
        let shares = self.shares();
        let share = shares.get(token)?;
        Some(Visit {
            session: share.session.clone(),
            port: share.port,
            sharer: share.sharer.clone(),
            held: share.held.subscribe(),
        })
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<String, Share>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn require_room(
    shares: &HashMap<String, Share>,
    session: &SessionId,
    owner: &Owner,
) -> Result<(), ApiError> {
    let of_session = shares.values().filter(|share| share.session == *session);
    let of_owner = shares.values().filter(|share| share.sharer.owner == *owner);
    let message = if of_session.count() >= SESSION_SHARES_MAX {
        format!("a session has at most {SESSION_SHARES_MAX} shared ports")
    } else if of_owner.count() >= OWNER_SHARES_MAX {
        format!(
            "`{}` has {OWNER_SHARES_MAX} shared ports, which is the limit",
            owner.0
        )
    } else if shares.len() >= SHARES_MAX {
        format!("the server has {SHARES_MAX} shared ports, which is the limit")
    } else {
        return Ok(());
    };
    Err(ApiError::new(ErrorCode::QuotaExceeded, message).with_hint("take one back first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(owner: &str, key: &str) -> Sharer {
        Sharer {
            owner: Owner(owner.to_owned()),
            key: key.to_owned(),
        }
    }

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[tokio::test]
    async fn a_share_holds_until_it_is_taken_back() {
        let shares = Shares::default();
        let session = session("s");
        let share = || shares.share(&session, 80, by("ann", "k1")).unwrap();
        let token = share();
        assert_eq!(token.len(), 32);
        assert_eq!(share(), token);
        let visit = shares.visit(&token).unwrap();
        assert_eq!(visit.port, 80);
        assert!(shares.visit("").is_none());
        shares.unshare(&session, 80).unwrap();
        visit.over().await;
        assert!(shares.visit(&token).is_none());
        assert_eq!(
            shares.unshare(&session, 80).unwrap_err().code,
            ErrorCode::NotFound
        );
        assert_ne!(share(), token);
    }

    #[test]
    fn one_session_cannot_share_without_end() {
        let shares = Shares::default();
        let (one, other) = (session("s"), session("other"));
        for port in 1..=64 {
            shares.share(&one, port, by("ann", "k1")).unwrap();
        }
        let refused = shares.share(&one, 65, by("ann", "k1")).unwrap_err();
        assert_eq!(refused.code, ErrorCode::QuotaExceeded);
        shares.share(&other, 65, by("ann", "k1")).unwrap();
        shares.forget(&one);
        assert_eq!(shares.of_session(&one), []);
    }

    #[test]
    fn one_owner_cannot_take_all_shares() {
        let shares = Shares::default();
        for number in 0..OWNER_SHARES_MAX / SESSION_SHARES_MAX {
            let session = session(&format!("s{number}"));
            for port in 1..=64 {
                shares.share(&session, port, by("ann", "k1")).unwrap();
            }
        }
        let refused = shares.share(&session("more"), 1, by("ann", "k2"));
        assert_eq!(refused.unwrap_err().code, ErrorCode::QuotaExceeded);
        shares.share(&session("more"), 1, by("ben", "k3")).unwrap();
    }

    /// HS-8.
    #[tokio::test]
    async fn a_share_ends_with_the_key_that_made_it() {
        let shares = Shares::default();
        let session = session("s");
        let token = shares.share(&session, 80, by("ann", "k1")).unwrap();
        // Asked for again with another key, it is that one's.
        shares.share(&session, 80, by("ann", "k2")).unwrap();
        shares.forget_key("k1");
        let visit = shares.visit(&token).unwrap();
        shares.forget_key("k2");
        visit.over().await;
        assert!(shares.visit(&token).is_none());
    }
}
