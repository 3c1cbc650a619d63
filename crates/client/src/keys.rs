//! Keys, and tickets for streams.

use zareba_api::{CreateKey, CreateSessionKey, CreatedKey, KeyPage, Ticket, operations::keys};
use zareba_protocol::SessionId;

use crate::{
    Client, ClientError,
    ask::{Ask, Repeat},
};

impl Client {
    /// Makes a key; its secret is shown this once.
    ///
    /// # Errors
    /// Whatever kept it from being made. A key whose answer is lost is of no use: remove it.
    pub async fn create_key(&self, new: &CreateKey) -> Result<CreatedKey, ClientError> {
        self.ask_for(Ask::new(self, &keys::CREATE, &[])?.json(new)?)
            .await
    }

    /// All keys, without their secrets.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn keys(&self) -> Result<KeyPage, ClientError> {
        self.ask_for(Ask::new(self, &keys::LIST, &[])?).await
    }

    /// Removes a key.
    ///
    /// # Errors
    /// When there is none, and whatever kept it from being removed.
    pub async fn delete_key(&self, key: &str) -> Result<(), ClientError> {
        let ask = Ask::new(self, &keys::DELETE, &[key])?;
        self.ask(ask.repeated(Repeat::Always)).await.map(drop)
    }

    /// Makes a key for one session.
    ///
    /// # Errors
    /// As [`create_key`](Self::create_key).
    pub async fn create_session_key(
        &self,
        session: &SessionId,
        new: &CreateSessionKey,
    ) -> Result<CreatedKey, ClientError> {
        let ask = Ask::new(self, &keys::CREATE_FOR_SESSION, &[session.as_str()])?;
        self.ask_for(ask.json(new)?).await
    }

    /// Makes a ticket, which stands for the key in the address of one stream, once.
    ///
    /// # Errors
    /// Whatever kept it from being made.
    pub async fn create_ticket(&self, session: &SessionId) -> Result<Ticket, ClientError> {
        let ask = Ask::new(self, &keys::CREATE_TICKET, &[session.as_str()])?;
        self.ask_for(ask.repeated(Repeat::Always)).await
    }
}
