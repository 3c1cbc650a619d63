//! The ports that are shared, as the server has them in memory.

use std::collections::HashMap;

use tokio::sync::watch;
use zareba_api::ErrorCode;
use zareba_protocol::SessionId;
use zareba_session::Owner;

use super::{Sharer, Visit};
use crate::error::ApiError;

/// Ports of one session that may be shared at once.
pub(super) const SESSION_SHARES_MAX: usize = 64;
/// Ports of one owner's sessions.
const OWNER_SHARES_MAX: usize = 1024;
/// Ports of all sessions.
const SHARES_MAX: usize = 16 * 1024;

/// What is shared, by the tokens of the addresses.
#[derive(Debug, Default)]
pub(super) struct Table {
    by_token: HashMap<String, Share>,
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

impl Table {
    /// Shares a port, or finds the token under which it is; that is by the right of whoever asked
    /// last.
    pub(super) fn share(
        &mut self,
        session: &SessionId,
        port: u16,
        sharer: Sharer,
    ) -> Result<String, ApiError> {
        let mut all = self.by_token.iter_mut();
        let found = all.find(|(_, share)| share.session == *session && share.port == port);
        if let Some((token, share)) = found {
            share.sharer = sharer;
            return Ok(token.clone());
        }
        require_room(&self.by_token, session, &sharer.owner)?;
        // Digits only, so that it is a name in a domain as well.
        let token = format!("{:032x}", rand::random::<u128>());
        self.insert(token.clone(), session.clone(), port, sharer);
        Ok(token)
    }

    /// Takes up what was shared before, or elsewhere. Visits of one that is known go on.
    pub(super) fn restore(&mut self, token: String, session: SessionId, port: u16, sharer: Sharer) {
        match self.by_token.get_mut(&token) {
            Some(known) if known.session == session && known.port == port => {
                known.sharer = sharer;
            }
            _ => self.insert(token, session, port, sharer),
        }
    }

    fn insert(&mut self, token: String, session: SessionId, port: u16, sharer: Sharer) {
        let share = Share {
            session,
            port,
            sharer,
            held: watch::Sender::default(),
        };
        self.by_token.insert(token, share);
    }

    /// Whether a port is shared under a token.
    pub(super) fn has(&self, token: &str) -> bool {
        self.by_token.contains_key(token)
    }

    /// Whether there is room for what was shared before.
    pub(super) fn is_full(&self) -> bool {
        self.by_token.len() >= SHARES_MAX
    }

    /// The tokens of shares that something is true of.
    pub(super) fn tokens(&self, of: impl Fn(&SessionId, u16, &Sharer) -> bool) -> Vec<String> {
        let all = self.by_token.iter();
        all.filter(|(_, share)| of(&share.session, share.port, &share.sharer))
            .map(|(token, _)| token.clone())
            .collect()
    }

    /// Takes a port back.
    pub(super) fn remove(&mut self, token: &str) {
        self.by_token.remove(token);
    }

    /// Ports of a session with their tokens.
    pub(super) fn of_session(&self, session: &SessionId) -> Vec<(u16, String)> {
        let all = self.by_token.iter();
        all.filter(|(_, share)| share.session == *session)
            .map(|(token, share)| (share.port, token.clone()))
            .collect()
    }

    /// The port behind a token. It is found by its hash, so that how long that takes tells
    /// nothing of other tokens.
    pub(super) fn visit(&self, token: &str) -> Option<Visit> {
        let share = self.by_token.get(token)?;
        Some(Visit {
            token: token.to_owned(),
            session: share.session.clone(),
            port: share.port,
            sharer: share.sharer.clone(),
            held: share.held.subscribe(),
        })
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

    fn by(owner: &str) -> Sharer {
        Sharer {
            owner: Owner(owner.to_owned()),
            key: "k1".to_owned(),
        }
    }

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[test]
    fn one_session_cannot_share_without_end() {
        let mut table = Table::default();
        let (one, other) = (session("s"), session("other"));
        for port in 1..=64 {
            table.share(&one, port, by("ann")).unwrap();
        }
        let refused = table.share(&one, 65, by("ann")).unwrap_err();
        assert_eq!(refused.code, ErrorCode::QuotaExceeded);
        table.share(&other, 65, by("ann")).unwrap();
    }

    #[test]
    fn one_owner_cannot_take_all_shares() {
        let mut table = Table::default();
        for number in 0..OWNER_SHARES_MAX / SESSION_SHARES_MAX {
            let session = session(&format!("s{number}"));
            for port in 1..=64 {
                table.share(&session, port, by("ann")).unwrap();
            }
        }
        let refused = table.share(&session("more"), 1, by("ann"));
        assert_eq!(refused.unwrap_err().code, ErrorCode::QuotaExceeded);
        table.share(&session("more"), 1, by("ben")).unwrap();
    }
}
