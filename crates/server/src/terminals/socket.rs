//! A terminal on a WebSocket: bytes both ways, and a few words in JSON beside them.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};
use zareba_api::{Access, TerminalCommand, TerminalNotice, TerminalQuery};
use zareba_session::{Deed, Session, Surface, Terminal, TerminalOutput, Viewer};
use zareba_wire::{program::FRAME_BYTES_MAX, strict};

use super::{exit, size};
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{Place, Query},
    websocket::{self, Gone, Socket},
};

pub(crate) async fn socket(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, terminal)): Place<(String, String)>,
    Query(query): Query<TerminalQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let terminal = session.terminals().get(&terminal)?;
    let may_write = principal.may(Access::Session);
    let attach = Deed::AttachTerminal {
        name: terminal.name().to_owned(),
        may_type: may_write,
    };
    let door = session.door(principal.requester(Surface::Api));
    door.admit(&attach).await?;
    let conversation = Conversation {
        viewer: terminal.view(query.from),
        terminal,
        session,
        may_write,
        key: principal.key,
        app: Arc::clone(&app),
        typed: None,
    };
    websocket::upgrade(&app, &request, "terminal", move |socket| {
        conversation.hold(socket)
    })
}

/// One viewer of a terminal.
struct Conversation {
    app: Arc<App>,
    session: Arc<Session>,
    terminal: Arc<Terminal>,
    viewer: Viewer,
    may_write: bool,
    key: String,
    typed: Option<Typed>,
}

/// Input that the program has not taken. Nothing more is read from the client meanwhile, so that
/// one who types faster than the program reads waits; output goes on.
#[derive(Clone)]
struct Typed {
    bytes: Bytes,
    /// When it is given up, so that the client is listened to again.
    deadline: Instant,
}

/// Why a conversation ends.
enum Over {
    Silently,
    With(CloseCode, &'static str),
}

impl From<Gone> for Over {
    fn from(_: Gone) -> Self {
        Self::Silently
    }
}

impl Conversation {
    async fn hold(mut self, mut socket: Socket) {
        match self.talk(&mut socket).await {
            Err(Over::With(code, reason)) => socket.close(code, reason).await,
            Ok(()) | Err(Over::Silently) => {}
        }
    }

    async fn talk(&mut self, socket: &mut Socket) -> Result<(), Over> {
        let notice = TerminalNotice {
            cursor: Some(self.viewer.cursor()),
            ..TerminalNotice::default()
        };
        say(socket, &notice).await?;
        let mut checks = tokio::time::interval(self.app.settings.limits.ping_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let app = Arc::clone(&self.app);
        let terminal = Arc::clone(&self.terminal);
        loop {
            let typed = self.typed.clone();
            tokio::select! {
                biased;
                () = app.draining() => {
                    return Err(Over::With(CloseCode::Away, "the server is shutting down"));
                }
                _ = checks.tick() => self.check().await?,
                written = write(&terminal, typed), if self.typed.is_some() => match written {
                    Ok(rest) => self.typed = rest,
                    Err(problem) => {
                        self.typed = None;
                        complain(socket, problem).await?;
                    }
                },
                received = socket.receive(), if self.typed.is_none() => {
                    self.heed(socket, received?).await?;
                }
                output = self.viewer.next() => self.show(socket, output).await?,
            }
        }
    }

    /// HS-8: whoever was let in may be let in no more.
    async fn check(&self) -> Result<(), Over> {
        let is_valid = self.app.authenticator.keys().is_valid(&self.key).await;
        if is_valid.unwrap_or(false) {
            // Somebody looks, and a terminal that is looked at is in use.
            self.session.keep_alive();
            return Ok(());
        }
        Err(Over::With(
            CloseCode::Policy,
            "the key is not valid any more",
        ))
    }

    /// What the client says.
    async fn heed(&mut self, socket: &mut Socket, message: Message) -> Result<(), Gone> {
        if !self.may_write {
            return complain(socket, "this key may look and not type").await;
        }
        self.session.keep_alive();
        match message {
            Message::Binary(bytes) => {
                let deadline = Instant::now() + self.app.settings.limits.write_stall;
                self.typed = Some(Typed { bytes, deadline });
                Ok(())
            }
            Message::Text(text) => match strict::from_slice(text.as_bytes()) {
                Ok(TerminalCommand { resize }) => match size(resize) {
                    Ok(size) => match self.terminal.resize(size).await {
                        Ok(()) => Ok(()),
                        Err(error) => complain(socket, &error.to_string()).await,
                    },
                    Err(error) => complain(socket, &error.message).await,
                },
                Err(error) => complain(socket, &format!("the message: {error}")).await,
            },
            _ => Ok(()),
        }
    }

    /// What the terminal shows.
    async fn show(&self, socket: &mut Socket, output: Option<TerminalOutput>) -> Result<(), Over> {
        match output {
            Some(TerminalOutput::Bytes(bytes)) => Ok(socket.send(Message::Binary(bytes)).await?),
            Some(TerminalOutput::Behind { cursor }) => {
                let notice = TerminalNotice {
                    cursor: Some(cursor),
                    ..TerminalNotice::default()
                };
                say(socket, &notice).await?;
                Err(Over::With(
                    CloseCode::Again,
                    "too slow; come back with the cursor",
                ))
            }
            Some(TerminalOutput::End(end)) => {
                let notice = TerminalNotice {
                    exit: Some(exit(end)),
                    ..TerminalNotice::default()
                };
                say(socket, &notice).await?;
                Err(Over::With(CloseCode::Normal, "the terminal has ended"))
            }
            None => Err(Over::Silently),
        }
    }
}

/// Types a piece and returns what is left, or says why nobody takes it. May be dropped and called
/// again with the same input: a piece is taken whole or not at all.
async fn write(terminal: &Terminal, typed: Option<Typed>) -> Result<Option<Typed>, &'static str> {
    let Some(mut typed) = typed else {
        return Ok(None);
    };
    let length = typed.bytes.len().min(FRAME_BYTES_MAX);
    let piece = typed.bytes.split_to(length);
    match tokio::time::timeout_at(typed.deadline, terminal.write(piece)).await {
        Ok(Ok(())) => Ok(Some(typed).filter(|typed| !typed.bytes.is_empty())),
        Ok(Err(_)) => Err("the program has ended"),
        Err(_) => Err("the program does not read; the input was dropped"),
    }
}

async fn complain(socket: &mut Socket, problem: &str) -> Result<(), Gone> {
    let notice = TerminalNotice {
        error: Some(problem.to_owned()),
        ..TerminalNotice::default()
    };
    say(socket, &notice).await
}

async fn say(socket: &mut Socket, notice: &TerminalNotice) -> Result<(), Gone> {
    let text = serde_json::to_string(notice).map_err(|_| Gone)?;
    socket.send(Message::text(text)).await
}
