//! The ports that are shared, by the tokens of their addresses.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use zareba_api::ErrorCode;
use zareba_protocol::SessionId;

use crate::error::ApiError;

/// Ports of one session that may be shared at once.
const SESSION_SHARES_MAX: usize = 64;
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
    /// Dropped when it is taken back, which ends what goes through it.
    held: watch::Sender<()>,
}

/// A shared port as somebody uses it.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) session: SessionId,
    pub(super) port: u16,
    held: watch::Receiver<()>,
}

impl Visit {
    /// Ready when the port is shared no more.
    pub(super) async fn over(mut self) {
        while self.held.changed().await.is_ok() {}
    }
}

impl Shares {
    /// Shares a port, or finds the token under which it is.
    pub(super) fn share(&self, session: &SessionId, port: u16) -> Result<String, ApiError> {
        let mut shares = self.shares();
        let of_session = || shares.iter().filter(|(_, share)| share.session == *session);
        if let Some((token, _)) = of_session().find(|(_, share)| share.port == port) {
            return Ok(token.clone());
        }
        if of_session().count() >= SESSION_SHARES_MAX || shares.len() >= SHARES_MAX {
            let message = format!("a session has at most {SESSION_SHARES_MAX} shared ports");
            return Err(
                ApiError::new(ErrorCode::QuotaExceeded, message).with_hint("take one back first")
            );
        }
        // Digits only, so that it is a name in a domain as well.
        let token = format!("{:032x}", rand::random::<u128>());
        let share = Share {
            session: session.clone(),
            port,
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
    pub(super) fn forget(&self, session: &SessionId) {
        self.shares().retain(|_, share| share.session != *session);
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
            held: share.held.subscribe(),
        })
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<String, Share>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_holds_until_it_is_taken_back() {
        let shares = Shares::default();
        let session = SessionId::new("s").unwrap();
        let token = shares.share(&session, 80).unwrap();
        assert_eq!(token.len(), 32);
        assert_eq!(shares.share(&session, 80).unwrap(), token);
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
        assert_ne!(shares.share(&session, 80).unwrap(), token);
    }

    #[test]
    fn one_session_cannot_share_without_end() {
        let shares = Shares::default();
        let session = SessionId::new("s").unwrap();
        for port in 1..=64 {
            shares.share(&session, port).unwrap();
        }
        assert_eq!(
            shares.share(&session, 65).unwrap_err().code,
            ErrorCode::QuotaExceeded
        );
        shares.share(&SessionId::new("other").unwrap(), 65).unwrap();
        shares.forget(&session);
        assert_eq!(shares.of_session(&session), []);
    }
}
