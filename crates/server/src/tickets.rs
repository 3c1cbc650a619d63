//! Tickets: what stands for a key in the address of one stream, once and for a short time.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use zareba_protocol::SessionId;

use crate::auth::Principal;

/// Tickets that are valid at once, of everyone and of one owner.
const TICKETS_MAX: usize = 4096;
const OWNER_TICKETS_MAX: usize = 256;

/// The tickets that are valid now, by the digest of their text.
#[derive(Debug)]
pub(crate) struct Tickets {
    life: Duration,
    issued: Mutex<HashMap<[u8; 32], Issued>>,
}

#[derive(Debug)]
struct Issued {
    principal: Principal,
    session: SessionId,
    expires: Instant,
}

impl Tickets {
    pub(crate) fn new(life: Duration) -> Self {
        Self {
            life,
            issued: Mutex::default(),
        }
    }

    /// Makes one, unless there are too many.
    pub(crate) fn issue(&self, principal: &Principal, session: &SessionId) -> Option<String> {
        let now = Instant::now();
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|_, ticket| now < ticket.expires);
        let theirs = |ticket: &&Issued| ticket.principal.owner == principal.owner;
        let of_owner = issued.values().filter(theirs).count();
        if issued.len() >= TICKETS_MAX || of_owner >= OWNER_TICKETS_MAX {
            return None;
        }
        let mut bytes = [0_u8; 32];
        rand::rng().fill(&mut bytes[..]);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let ticket = Issued {
            principal: principal.clone(),
            session: session.clone(),
            expires: now + self.life,
        };
        issued.insert(Sha256::digest(text.as_bytes()).into(), ticket);
        Some(text)
    }

    /// Takes one, which is gone then. It opens streams of its session and nothing else.
    pub(crate) fn redeem(&self, text: &str) -> Option<Principal> {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = issued.remove(&digest)?;
        let principal = Principal {
            session: Some(ticket.session),
            ..ticket.principal
        };
        (Instant::now() < ticket.expires).then_some(principal)
    }
}

#[cfg(test)]
mod tests {
    use zareba_api::{KeyQuota, KeyScope};
    use zareba_session::Owner;

    use super::*;

    fn principal(owner: &str, key: &str) -> Principal {
        Principal {
            key: key.to_owned(),
            owner: Owner(owner.to_owned()),
            scope: KeyScope::Session,
            session: None,
            quota: KeyQuota::default(),
            expires: None,
            claimed: None,
        }
    }

    #[test]
    fn more_keys_give_an_owner_no_more_tickets() {
        let tickets = Tickets::new(Duration::from_secs(60));
        let session = SessionId::new("s").unwrap();
        for number in 0..OWNER_TICKETS_MAX {
            let ann = principal("ann", &format!("k{number}"));
            assert!(tickets.issue(&ann, &session).is_some());
        }
        let more = principal("ann", "another");
        assert_eq!(tickets.issue(&more, &session), None);
        assert!(tickets.issue(&principal("ben", "k"), &session).is_some());
    }
}
