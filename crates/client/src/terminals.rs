//! Terminals of a session: opened and closed by requests, looked at and typed into over a
//! WebSocket.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, Upgraded, header};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};
use zareba_api::{
    CreateTerminal, Terminal, TerminalCommand, TerminalNotice, TerminalPage, WindowSize,
    operations::terminals,
};
use zareba_protocol::SessionId;

use crate::{
    Client, ClientError, Sent,
    ask::{Ask, Repeat, parse},
};

/// The largest message that a server may send.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// A view of one terminal.
#[derive(Debug)]
pub struct TerminalView {
    socket: WebSocketStream<Upgraded>,
    place: String,
}

/// What comes from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// It shows more.
    Output(Bytes),
    /// The server says something about it: where the output is, that it has ended.
    Notice(TerminalNotice),
    /// The server ended the view. A viewer that was too slow comes back with the last cursor.
    End,
}

impl Client {
    /// Opens a terminal.
    ///
    /// # Errors
    /// Whatever kept it from being opened.
    pub async fn open_terminal(
        &self,
        session: &SessionId,
        new: &CreateTerminal,
    ) -> Result<Terminal, ClientError> {
        let ask = Ask::new(self, &terminals::OPEN, &[session.as_str()])?;
        self.ask_for(ask.json(new)?).await
    }

    /// All terminals of a session.
    ///
    /// # Errors
    /// When there is no such session, and whatever kept the answer from coming.
    pub async fn terminals(&self, session: &SessionId) -> Result<TerminalPage, ClientError> {
        let ask = Ask::new(self, &terminals::LIST, &[session.as_str()])?;
        self.ask_for(ask).await
    }

    /// Closes a terminal and ends its program.
    ///
    /// # Errors
    /// When there is none, and whatever kept it from being closed.
    pub async fn close_terminal(
        &self,
        session: &SessionId,
        terminal: &str,
    ) -> Result<(), ClientError> {
        let ask = Ask::new(self, &terminals::CLOSE, &[session.as_str(), terminal])?;
        self.ask(ask.repeated(Repeat::Always)).await.map(drop)
    }

    /// Looks at a terminal: its output from a byte on, or as far back as it is kept.
    ///
    /// # Errors
    /// When there is none, and whatever kept the view from being opened.
    pub async fn view_terminal(
        &self,
        session: &SessionId,
        terminal: &str,
        from: Option<u64>,
    ) -> Result<TerminalView, ClientError> {
        let mut url = self.url(terminals::SOCKET.path, &[session.as_str(), terminal])?;
        if let Some(from) = from {
            url.query_pairs_mut().append_pair("from", &from.to_string());
        }
        let key = tungstenite::handshake::client::generate_key();
        let request = self
            .keyed(Method::GET, url)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key);
        let broken = |error| ClientError::broken(self.place(), error);
        let response = self.send_upgrade(request).await?;
        let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
        if accepted.is_none_or(|accept| *accept != derive_accept_key(key.as_bytes())) {
            return Err(ClientError::Nonsense {
                problem: "it is no WebSocket".to_owned(),
            });
        }
        let upgraded = response.upgrade().await.map_err(broken)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(TerminalView {
            socket,
            place: self.place().to_owned(),
        })
    }
}

impl TerminalView {
    /// What comes next. May be dropped and called again. Pings are answered on the way.
    ///
    /// # Errors
    /// When the connection breaks, or the server sends what makes no sense.
    pub async fn next(&mut self) -> Result<TerminalEvent, ClientError> {
        loop {
            let message = match self.socket.next().await {
                None => return Ok(TerminalEvent::End),
                Some(message) => message.map_err(|error| self.broken(error))?,
            };
            match message {
                Message::Binary(bytes) => return Ok(TerminalEvent::Output(bytes)),
                Message::Text(text) => {
                    return parse(text.as_bytes()).map(TerminalEvent::Notice);
                }
                Message::Close(_) => return Ok(TerminalEvent::End),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Types.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn input(&mut self, bytes: Bytes) -> Result<(), ClientError> {
        let sent = self.socket.send(Message::Binary(bytes)).await;
        sent.map_err(|error| self.broken(error))
    }

    /// Gives the terminal another size.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn resize(&mut self, size: WindowSize) -> Result<(), ClientError> {
        let command = TerminalCommand { resize: size };
        let text = serde_json::to_string(&command).map_err(|error| ClientError::Invalid {
            problem: error.to_string(),
        })?;
        let sent = self.socket.send(Message::text(text)).await;
        sent.map_err(|error| self.broken(error))
    }

    fn broken(&self, error: tungstenite::Error) -> ClientError {
        ClientError::Unreachable {
            place: self.place.clone(),
            sent: Sent::Perhaps,
            source: Box::new(error),
        }
    }
}
