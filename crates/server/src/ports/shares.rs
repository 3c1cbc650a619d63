//! The ports that are shared, in memory and written down.
//!
//! A share outlives the server: pages that people have open go on after a restart. It is a
//! document of the log under its token, and is removed from there before it is from memory, so
//! that what was taken back stays so. Where several servers share the log, what is in memory is
//! compared with the documents whenever it is used: any of them may have taken it back.

mod table;

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as Exclusive, Semaphore, watch};
use zareba_api::ErrorCode;
use zareba_eventlog::{Document, DocumentName, Expected, LogError, Selection, Store};
use zareba_protocol::SessionId;
use zareba_session::{Owner, Requester, SessionError, SessionState, Sessions, Surface};

use self::table::{SESSION_SHARES_MAX, Table};
use crate::error::{ApiError, chain};

const KIND: &str = "share";
/// The field of a document that says whose port it is.
const SESSION: &str = "session";
/// Documents that are looked up at once: addresses that nobody has made must not keep the
/// database busy.
const LOOKUPS_MAX: usize = 4;
/// The digits of a token: 128 random bits.
const TOKEN_DIGITS: usize = 32;

/// What is shared.
#[derive(Debug)]
pub(crate) struct Shares {
    sessions: Sessions,
    table: Mutex<Table>,
    /// Held while documents change, so that they change in the order in which the table does.
    writing: Exclusive<()>,
    lookups: Semaphore,
}

/// By whose right a port is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sharer {
    /// Whose session it is.
    pub(super) owner: Owner,
    /// The key that was used: what it has shared ends with it.
    pub(super) key: String,
}

impl Sharer {
    /// A visitor, who knows the address and has no key: it acts by the right of the key that has
    /// shared the port.
    pub(super) fn visitor(&self) -> Requester {
        Requester {
            owner: self.owner.clone(),
            key: Some(self.key.clone()),
            scope: None,
            surface: Surface::Preview,
        }
    }
}

/// A shared port as somebody uses it.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) token: String,
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
            sessions: sessions.clone(),
            table: Mutex::default(),
            writing: Exclusive::default(),
            lookups: Semaphore::new(LOOKUPS_MAX),
        };
        for document in shares.store().list(KIND).await? {
            if !shares.take_up(&document).await
                && let Err(error) = shares.store().delete(document.name).await
            {
                tracing::warn!(%error, "a share that has ended cannot be removed yet");
            }
        }
        Ok(shares)
    }

    /// Takes a written share up; `false` when nothing can be reached by it any more.
    async fn take_up(&self, document: &Document) -> bool {
        let Ok(stored) = serde_json::from_value::<Stored>(document.value.clone()) else {
            tracing::error!("a stored share cannot be read and is removed");
            return false;
        };
        match self.sessions.get(&stored.session).await {
            Ok(session) if !can_be_shared(session.info().state) => return false,
            Err(SessionError::NotFound { .. }) => return false,
            // Whether it can be reached is seen by whoever comes; nobody can say now.
            Ok(_) | Err(_) => {}
        }
        let sharer = Sharer {
            owner: Owner(stored.owner),
            key: stored.key,
        };
        let (token, mut table) = (document.name.name.clone(), self.table());
        if table.is_full() && !table.has(&token) {
            return false;
        }
        table.restore(token, stored.session, stored.port, sharer);
        true
    }

    /// Brings what is known of a token in line with its document, which another server may have
    /// made or removed.
    async fn look_up(&self, token: &str) -> Result<(), LogError> {
        if !self.sessions.log().is_shared() || !is_token(token) {
            return Ok(());
        }
        let _turn = self.lookups.acquire().await;
        let known = match self.store().get(named(token)).await? {
            Some(document) => self.take_up(&document).await,
            None => false,
        };
        if !known {
            self.table().remove(token);
        }
        Ok(())
    }

    /// The same for all ports of a session. Documents must not change meanwhile.
    async fn look_up_all(&self, session: &SessionId) -> Result<(), LogError> {
        if !self.sessions.log().is_shared() {
            return Ok(());
        }
        let documents = self.written(session).await?;
        for (_, token) in self.table().of_session(session) {
            if !documents.iter().any(|found| found.name.name == token) {
                self.table().remove(&token);
            }
        }
        for document in &documents {
            self.take_up(document).await;
        }
        Ok(())
    }

    /// What is written down of a session's ports, as much as one server lets there be.
    async fn written(&self, session: &SessionId) -> Result<Vec<Document>, LogError> {
        let selection = Selection {
            kind: KIND,
            field: SESSION,
            text: Some(session.to_string()),
            after: None,
            limit: SESSION_SHARES_MAX,
        };
        self.store().select(selection).await
    }

    /// Forgets what other servers have taken back. Documents must not change meanwhile.
    async fn make_room(&self) -> Result<(), LogError> {
        // Listed first: what is taken up while the documents are read has one.
        let known = self.table().tokens(|_, _, _| true);
        let documents = self.store().list(KIND).await?;
        let written: HashSet<&str> = documents.iter().map(|it| it.name.name.as_str()).collect();
        let mut table = self.table();
        for token in known {
            if !written.contains(token.as_str()) {
                table.remove(&token);
            }
        }
        Ok(())
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
        self.look_up_all(session).await?;
        let stored = Stored {
            session: session.clone(),
            port,
            owner: sharer.owner.0.clone(),
            key: sharer.key.clone(),
        };
        let value = serde_json::to_value(stored).map_err(|_| ApiError::internal())?;
        let shared = self.table().share(session, port, sharer.clone());
        let token = match shared {
            Err(_) if self.sessions.log().is_shared() => {
                self.make_room().await?;
                self.table().share(session, port, sharer)?
            }
            shared => shared?,
        };
        let put = self.store().put(named(&token), value, Expected::Anything);
        if let Err(error) = put.await {
            self.table().remove(&token);
            return Err(error.into());
        }
        Ok(token)
    }

    /// Takes a port back.
    pub(super) async fn unshare(&self, session: &SessionId, port: u16) -> Result<(), ApiError> {
        let _turn = self.writing.lock().await;
        self.look_up_all(session).await?;
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
        let _turn = self.writing.lock().await;
        if let Err(error) = self.remove_written(session).await {
            tracing::warn!(%error, "ports that other servers have shared may stay written down");
        }
        self.forget_those(|of, _, _| of == session).await;
    }

    /// Removes what any server has written down of a session that has ended.
    async fn remove_written(&self, session: &SessionId) -> Result<(), LogError> {
        if !self.sessions.log().is_shared() {
            return Ok(());
        }
        loop {
            let documents = self.written(session).await?;
            // Several servers at once may have written more than each of them would.
            let is_last = documents.len() < SESSION_SHARES_MAX;
            for document in documents {
                self.store().delete(document.name).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Takes all ports back that were shared by the right of a key, which is not valid any more.
    pub(crate) async fn forget_key(&self, key: &str) {
        let _turn = self.writing.lock().await;
        self.forget_those(|_, _, sharer| sharer.key == key).await;
    }

    /// Ports of a session with their tokens.
    pub(super) async fn of_session(
        &self,
        session: &SessionId,
    ) -> Result<Vec<(u16, String)>, LogError> {
        let _turn = self.writing.lock().await;
        self.look_up_all(session).await?;
        Ok(self.table().of_session(session))
    }

    /// The port behind a token.
    pub(super) async fn visit(&self, token: &str) -> Result<Option<Visit>, LogError> {
        self.look_up(token).await?;
        Ok(self.table().visit(token))
    }

    /// Whether a port is still shared under a token, as far as that can be known.
    pub(super) async fn is_shared(&self, token: &str) -> Result<bool, LogError> {
        self.look_up(token).await?;
        Ok(self.table().has(token))
    }

    /// Takes ports back whether or not that can be written down.
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

    /// Takes ports back and returns how many these were. Only one may do so at a time.
    async fn take_back(
        &self,
        which: impl Fn(&SessionId, u16, &Sharer) -> bool,
    ) -> Result<usize, LogError> {
        let tokens = self.table().tokens(which);
        for token in &tokens {
            self.store().delete(named(token)).await?;
            self.table().remove(token);
        }
        Ok(tokens.len())
    }

    fn store(&self) -> &dyn Store {
        self.sessions.log().store()
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

/// Whether a text can be a token at all.
fn is_token(text: &str) -> bool {
    text.len() == TOKEN_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn named(token: &str) -> DocumentName {
    DocumentName {
        kind: KIND,
        name: token.to_owned(),
    }
}
