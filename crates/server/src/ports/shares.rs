//! The ports that are shared, in memory and written down.
//!
//! A share outlives the server: pages that people have open go on after a restart. It is a
//! document of the log under its token, and is removed from there before it is from memory, so
//! that what was taken back stays so.

mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as Exclusive, watch};
use zareba_api::ErrorCode;
use zareba_eventlog::{Document, DocumentName, EventLog, Expected, LogError};
use zareba_protocol::SessionId;
use zareba_session::{Owner, SessionError, SessionState, Sessions};

use self::table::Table;
use crate::error::{ApiError, chain};

const KIND: &str = "share";

/// What is shared.
#[derive(Debug)]
pub(crate) struct Shares {
    log: EventLog,
    table: Mutex<Table>,
    /// Held while documents change, so that they change in the order in which the table does.
    writing: Exclusive<()>,
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

/// A share as it is written down, under its token.
#[derive(Serialize, Deserialize)]
struct Stored {
    session: SessionId,
    port: u16,
    owner: String,
    key: String,
}

impl Shares {
    /// What was shared before, without what has ended since.
    pub(crate) async fn load(sessions: &Sessions) -> Result<Self, LogError> {
        let shares = Self {
            log: sessions.log().clone(),
            table: Mutex::default(),
            writing: Exclusive::default(),
        };
        for document in shares.log.store().list(KIND).await? {
            if !shares.take_up(&document, sessions).await
                && let Err(error) = shares.log.store().delete(document.name).await
            {
                tracing::warn!(%error, "a share that has ended cannot be removed yet");
            }
        }
        Ok(shares)
    }

    /// Takes a written share up; `false` when nothing can be reached by it any more.
    async fn take_up(&self, document: &Document, sessions: &Sessions) -> bool {
        let Ok(stored) = serde_json::from_value::<Stored>(document.value.clone()) else {
            tracing::error!("a stored share cannot be read and is removed");
            return false;
        };
        let session = match sessions.get(&stored.session).await {
            Ok(session) => session,
            Err(SessionError::NotFound { .. }) => return false,
            // Nobody can say now, or another server can.
            Err(_) => return true,
        };
        if !can_be_shared(session.info().state) || self.table().is_full() {
            return false;
        }
        let sharer = Sharer {
            owner: Owner(stored.owner),
            key: stored.key,
        };
        let token = document.name.name.clone();
        self.table()
            .insert(token, stored.session, stored.port, sharer);
        true
    }

    /// Shares a port, or finds the token under which it is; that is by the right of whoever asked
    /// last.
    pub(super) async fn share(
        &self,
        session: &SessionId,
        port: u16,
        sharer: Sharer,
    ) -> Result<String, ApiError> {
        let _turn = self.writing.lock().await;
        let stored = Stored {
            session: session.clone(),
            port,
            owner: sharer.owner.0.clone(),
            key: sharer.key.clone(),
        };
        let value = serde_json::to_value(stored).map_err(|_| ApiError::internal())?;
        let token = self.table().share(session, port, sharer)?;
        let put = self
            .log
            .store()
            .put(named(&token), value, Expected::Anything);
        if let Err(error) = put.await {
            self.table().remove(&token);
            return Err(error.into());
        }
        Ok(token)
    }

    /// Takes a port back.
    pub(super) async fn unshare(&self, session: &SessionId, port: u16) -> Result<(), ApiError> {
        let taken = self.take_back(|of, shared, _| of == session && shared == port);
        if taken.await? == 0 {
            let message = format!("the port {port} is not shared");
            return Err(ApiError::new(ErrorCode::NotFound, message));
        }
        Ok(())
    }

    /// Takes all ports of a session back, which has ended: what cannot be removed now is not
    /// taken up again.
    pub(crate) async fn forget(&self, session: &SessionId) {
        self.forget_those(|of, _, _| of == session).await;
    }

    /// Takes all ports back that were shared by the right of a key, which is not valid any more.
    pub(crate) async fn forget_key(&self, key: &str) {
        self.forget_those(|_, _, sharer| sharer.key == key).await;
    }

    /// Ports of a session with their tokens.
    pub(super) fn of_session(&self, session: &SessionId) -> Vec<(u16, String)> {
        self.table().of_session(session)
    }

    /// The port behind a token.
    pub(super) fn visit(&self, token: &str) -> Option<Visit> {
        self.table().visit(token)
    }

    async fn forget_those(&self, which: impl Fn(&SessionId, u16, &Sharer) -> bool) {
        if let Err(error) = self.take_back(&which).await {
            tracing::warn!(
                error = chain(&error),
                "cannot remove shares that have ended"
            );
            let mut table = self.table();
            for token in table.tokens(which) {
                table.remove(&token);
            }
        }
    }

    /// Takes ports back and returns how many these were.
    async fn take_back(
        &self,
        which: impl Fn(&SessionId, u16, &Sharer) -> bool,
    ) -> Result<usize, LogError> {
        let _turn = self.writing.lock().await;
        let tokens = self.table().tokens(which);
        for token in &tokens {
            self.log.store().delete(named(token)).await?;
            self.table().remove(token);
        }
        Ok(tokens.len())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a session's ports can be reached, now or when it wakes.
pub(super) fn can_be_shared(state: SessionState) -> bool {
    match state {
        SessionState::Starting | SessionState::Ready | SessionState::Paused => true,
        SessionState::Failed | SessionState::Lost | SessionState::Closed => false,
    }
}

fn named(token: &str) -> DocumentName {
    DocumentName {
        kind: KIND,
        name: token.to_owned(),
    }
}
