//! Making, finding and ending sessions.

use std::time::Duration;

use serde_json::Value;
use zareba_api::{
    ChangeList, CreateSession, ErrorCode, PageQuery, Session, SessionPage, SetVariables,
    UpdateSession, operations::sessions,
};
use zareba_protocol::SessionId;

use crate::{
    Client, ClientError,
    ask::{Ask, Repeat},
};

/// The longest list or patch of changes that is taken.
const CHANGES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a session may take to be ready, to be frozen or to end.
const LONG: Duration = Duration::from_secs(300);

impl Client {
    /// Makes a session and returns once it is ready.
    ///
    /// # Errors
    /// Whatever kept it from being made. When the answer is lost, the session is looked for.
    pub async fn create_session(&self, new: CreateSession) -> Result<Session, ClientError> {
        self.create(new, "true").await
    }

    /// Makes a session and returns once it is recorded; its state tells when it is ready.
    ///
    /// # Errors
    /// As [`create_session`](Self::create_session).
    pub async fn begin_session(&self, new: CreateSession) -> Result<Session, ClientError> {
        self.create(new, "false").await
    }

    /// The name is chosen here, so that there is never a second session for one wish.
    async fn create(&self, mut new: CreateSession, wait: &str) -> Result<Session, ClientError> {
        let chosen = match new.id.take() {
            Some(id) => id,
            None => random_id()?,
        };
        new.id = Some(chosen.clone());
        let ask = Ask::new(self, &sessions::CREATE, &[])?
            .query("wait", wait)
            .json(&new)?
            .within(LONG);
        match self.ask_for(ask).await {
            Err(error) if error.may_have_happened() && error.class().is_retryable() => {
                match self.session(&chosen).await {
                    Ok(session) => Ok(session),
                    Err(_) => Err(error),
                }
            }
            result => result,
        }
    }

    /// Sets and removes variables of everything in a session.
    ///
    /// # Errors
    /// Whatever kept them from being set.
    pub async fn set_variables(
        &self,
        session: &SessionId,
        changes: &SetVariables,
    ) -> Result<(), ClientError> {
        let ask = self
            .about(&sessions::SET_VARIABLES, session)?
            .json(changes)?;
        let ask = ask.repeated(Repeat::Always).within(LONG);
        self.ask(ask).await.map(drop)
    }

    /// A session, also one that is closed.
    ///
    /// # Errors
    /// When there is none, and whatever kept the answer from coming.
    pub async fn session(&self, session: &SessionId) -> Result<Session, ClientError> {
        self.ask_for(self.about(&sessions::GET, session)?).await
    }

    /// Some sessions, by name.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn sessions(&self, page: &PageQuery) -> Result<SessionPage, ClientError> {
        let mut ask = Ask::new(self, &sessions::LIST, &[])?;
        if let Some(after) = &page.after {
            ask = ask.query("after", after.as_str());
        }
        if let Some(limit) = page.limit {
            ask = ask.query("limit", &limit.to_string());
        }
        self.ask_for(ask).await
    }

    /// Ends a session and keeps its log. One that has ended is no error, one that never was is.
    ///
    /// # Errors
    /// When there is none, and whatever kept it from being ended.
    pub async fn delete_session(&self, session: &SessionId) -> Result<(), ClientError> {
        let ask = self.about(&sessions::DELETE, session)?;
        self.ask(ask.repeated(Repeat::Always)).await.map(drop)
    }

    /// Ends a session and removes its log.
    ///
    /// # Errors
    /// As [`delete_session`](Self::delete_session); a repeated request finds none.
    pub async fn purge_session(&self, session: &SessionId) -> Result<(), ClientError> {
        let ask = self
            .about(&sessions::DELETE, session)?
            .query("purge", "true");
        self.ask(ask.repeated(Repeat::Always)).await.map(drop)
    }

    /// Changes when a session goes to sleep, when it ends, or its labels.
    ///
    /// # Errors
    /// When the key may not have that, and whatever kept the answer from coming.
    pub async fn update_session(
        &self,
        session: &SessionId,
        update: &UpdateSession,
    ) -> Result<Session, ClientError> {
        let ask = self.about(&sessions::UPDATE, session)?.json(update)?;
        self.ask_for(ask).await
    }

    /// Freezes a session.
    ///
    /// # Errors
    /// Whatever kept it from being frozen.
    pub async fn pause_session(&self, session: &SessionId) -> Result<Session, ClientError> {
        let ask = self.about(&sessions::PAUSE, session)?;
        self.ask_for(ask.repeated(Repeat::Always)).await
    }

    /// Lets a session go on.
    ///
    /// # Errors
    /// Whatever kept it from going on.
    pub async fn resume_session(&self, session: &SessionId) -> Result<Session, ClientError> {
        let ask = self.about(&sessions::RESUME, session)?;
        self.ask_for(ask.repeated(Repeat::Always)).await
    }

    /// Counts as use of a session.
    ///
    /// # Errors
    /// When there is none, and whatever kept the answer from coming.
    pub async fn keep_session_alive(&self, session: &SessionId) -> Result<Session, ClientError> {
        let ask = self.about(&sessions::KEEP_ALIVE, session)?;
        self.ask_for(ask.repeated(Repeat::Always)).await
    }

    /// What stands around a session's sandbox and what it uses.
    ///
    /// # Errors
    /// When the runtime cannot say, and whatever kept the answer from coming.
    pub async fn inspect_session(&self, session: &SessionId) -> Result<Value, ClientError> {
        self.ask_for(self.about(&sessions::INSPECT, session)?).await
    }

    /// What a session has changed in its workspace, or below a path of it.
    ///
    /// # Errors
    /// When the runtime cannot say, and whatever kept the answer from coming.
    pub async fn changes(
        &self,
        session: &SessionId,
        path: Option<&str>,
    ) -> Result<ChangeList, ClientError> {
        let ask = self.changes_of(session, path, "list")?;
        self.ask_for(ask.at_most(CHANGES_BYTES_MAX)).await
    }

    /// The same as a patch.
    ///
    /// # Errors
    /// When the runtime cannot say, and whatever kept the answer from coming.
    pub async fn patch(
        &self,
        session: &SessionId,
        path: Option<&str>,
    ) -> Result<Vec<u8>, ClientError> {
        let ask = self.changes_of(session, path, "patch")?;
        let answer = self.ask(ask.at_most(CHANGES_BYTES_MAX)).await?;
        Ok(answer.document.into())
    }

    fn changes_of<'a>(
        &self,
        session: &SessionId,
        path: Option<&str>,
        format: &str,
    ) -> Result<Ask<'a>, ClientError> {
        let ask = self
            .about(&sessions::CHANGES, session)?
            .query("format", format);
        Ok(match path {
            Some(path) => ask.query("path", path),
            None => ask,
        })
    }

    /// Whether an error means that there is no such session.
    pub fn is_missing(error: &ClientError) -> bool {
        error.code() == Some(ErrorCode::NotFound)
    }

    fn about<'a>(
        &self,
        operation: &'a zareba_api::Operation,
        session: &SessionId,
    ) -> Result<Ask<'a>, ClientError> {
        Ok(Ask::new(self, operation, &[session.as_str()])?.within(LONG))
    }
}

fn random_id() -> Result<SessionId, ClientError> {
    let name = format!("s-{:032x}", rand::random::<u128>());
    SessionId::new(name).map_err(|error| ClientError::Invalid {
        problem: error.to_string(),
    })
}
