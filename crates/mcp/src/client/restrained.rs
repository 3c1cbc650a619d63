//! A connection on which a server may answer, and hardly anything else.
//!
//! Whatever a server asks for is refused here, before the protocol's library keeps a task and the
//! whole request for it: a server that asks and does not read the answers would otherwise fill
//! our memory. One that goes on asking is cut off.

use rmcp::{
    ErrorData, RoleClient,
    model::{
        ClientResult, ErrorCode, JsonRpcMessage, RequestId, ServerNotification, ServerRequest,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::task::JoinSet;

use super::connection::Ending;

/// Refusals and other words of ours that wait to be taken by a server.
const UNREAD_MAX: usize = 16;

/// Requests of one server that are refused before it is cut off. Asking whether we are there is
/// none of them.
const REFUSED_MAX: usize = 100;

/// Notifications between two answers.
const UNASKED_MAX: usize = 100_000;

/// A way to a server that may only answer.
pub(super) struct Restrained<T> {
    inner: T,
    /// What is being sent to it that it has not taken yet.
    unread: JoinSet<()>,
    refused: usize,
    unasked: usize,
    ending: Ending,
}

impl<T: Transport<RoleClient>> Restrained<T> {
    pub(super) fn new(inner: T, ending: &Ending) -> Self {
        Self {
            inner,
            unread: JoinSet::new(),
            refused: 0,
            unasked: 0,
            ending: ending.clone(),
        }
    }

    /// Answers a request of the server; `Err` says why it is cut off instead.
    fn refuse(&mut self, id: RequestId, request: &ServerRequest) -> Result<(), String> {
        let answer = match request {
            ServerRequest::PingRequest(_) => JsonRpcMessage::response(ClientResult::empty(()), id),
            _ => {
                self.refused += 1;
                let message = "servers can ask nothing of this client";
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None);
                JsonRpcMessage::error(error, Some(id))
            }
        };
        if self.refused > REFUSED_MAX {
            return Err(format!(
                "it was cut off: it went on to ask for what it was refused {REFUSED_MAX} times"
            ));
        }
        while self.unread.try_join_next().is_some() {}
        if self.unread.len() >= UNREAD_MAX {
            return Err(format!(
                "it was cut off: it asks and does not take the answers, of which {UNREAD_MAX} wait"
            ));
        }
        let sent = self.inner.send(answer);
        // One that cannot be sent ends with the connection.
        self.unread.spawn(async move { drop(sent.await) });
        Ok(())
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Restrained<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let verdict = match self.inner.receive().await? {
                JsonRpcMessage::Request(asked) => self.refuse(asked.id, &asked.request),
                JsonRpcMessage::Notification(told) => {
                    self.unasked += 1;
                    let is_news = matches!(
                        told.notification,
                        ServerNotification::ToolListChangedNotification(_)
                    );
                    match self.unasked > UNASKED_MAX {
                        true => Err(format!(
                            "it was cut off: it told us {UNASKED_MAX} things that nobody asked for"
                        )),
                        false if is_news => return Some(JsonRpcMessage::Notification(told)),
                        // Progress, log messages and the like are for nobody here.
                        false => Ok(()),
                    }
                }
                answer => {
                    self.unasked = 0;
                    return Some(answer);
                }
            };
            if let Err(why) = verdict {
                self.ending.set(why);
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.unread.abort_all();
        self.inner.close().await
    }
}
