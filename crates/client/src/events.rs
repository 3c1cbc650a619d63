//! Reading what happened: pages, and a stream that goes on by itself where it broke off.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use eventsource_stream::{EventStreamError, Eventsource as _};
use futures_core::Stream;
use futures_util::StreamExt as _;
use reqwest::{Method, Response};
use zareba_api::{Event, EventPage, LAST_EVENT_ID, operations::events};
use zareba_protocol::SessionId;

use crate::{
    BackOff, Client, ClientError, Sent,
    actions::OBSERVATION_BYTES_MAX,
    ask::{Ask, parse},
};

/// How often a stream is taken up again without an event in between.
const TRIES_MAX: usize = 10;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// One event.
const EVENT_BYTES_MAX: usize = OBSERVATION_BYTES_MAX;

type Messages = Pin<Box<dyn Stream<Item = Result<eventsource_stream::Event, ClientError>> + Send>>;

/// Events of a session as they come, each once and in order. A connection that breaks is made
/// again behind the last event that was seen.
pub struct EventStream {
    client: Client,
    session: SessionId,
    /// The number of the event that comes next.
    next: u64,
    messages: Option<Messages>,
    /// Bytes that came since the last event.
    pending: Arc<AtomicUsize>,
    tries: usize,
    back_off: BackOff,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EventStream")
            .field("session", &self.session)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Some events, from a number on.
    ///
    /// # Errors
    /// When there is no such session, and whatever kept the answer from coming.
    pub async fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: Option<usize>,
    ) -> Result<EventPage, ClientError> {
        let mut ask = Ask::new(self, &events::PAGE, &[session.as_str()])?
            .query("from", &from.to_string())
            .at_most(OBSERVATION_BYTES_MAX);
        if let Some(limit) = limit {
            ask = ask.query("limit", &limit.to_string());
        }
        self.ask_for(ask).await
    }

    /// Events as they come, from a number on. Connects when the first one is asked for.
    pub fn event_stream(&self, session: &SessionId, from: u64) -> EventStream {
        EventStream {
            client: self.clone(),
            session: session.clone(),
            next: from,
            messages: None,
            pending: Arc::default(),
            tries: 0,
            back_off: first_back_off(),
        }
    }
}

impl EventStream {
    /// The number of the event that comes next: where to go on after a break.
    pub fn cursor(&self) -> u64 {
        self.next
    }

    /// The next event, once it is there. May be dropped and called again.
    ///
    /// # Errors
    /// When the server refuses, sends what makes no sense, or cannot be reached for long. The
    /// stream can be asked again.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            match self.attempt().await {
                Ok(Some(event)) => {
                    self.tries = 0;
                    self.back_off = first_back_off();
                    return Ok(event);
                }
                // Seen before the break.
                Ok(None) => {}
                Err(error) => {
                    self.messages = None;
                    let may_retry = error.class().is_retryable() && self.tries < TRIES_MAX;
                    if !may_retry {
                        self.tries = 0;
                        self.back_off = first_back_off();
                        return Err(error);
                    }
                    self.tries += 1;
                    tracing::debug!(%error, next = self.next, "taking up a stream again");
                    self.back_off.wait().await;
                }
            }
        }
    }

    async fn attempt(&mut self) -> Result<Option<Event>, ClientError> {
        let messages = match &mut self.messages {
            Some(messages) => messages,
            None => {
                let pending = Arc::clone(&self.pending);
                let opened = open(&self.client, &self.session, self.next, pending).await?;
                self.messages.insert(opened)
            }
        };
        let Some(message) = messages.next().await else {
            return Err(self.broken("the server ended the stream"));
        };
        let message = message?;
        self.pending.store(0, Ordering::Relaxed);
        let event: Event = parse(message.data.as_bytes())?;
        match event.sequence.checked_sub(self.next) {
            None => Ok(None),
            Some(0) => {
                self.next += 1;
                Ok(Some(event))
            }
            Some(_) => Err(ClientError::Nonsense {
                problem: format!("event {} came instead of {}", event.sequence, self.next),
            }),
        }
    }

    fn broken(&self, reason: &'static str) -> ClientError {
        ClientError::Unreachable {
            place: self.client.place().to_owned(),
            sent: Sent::Perhaps,
            source: reason.into(),
        }
    }
}

const fn first_back_off() -> BackOff {
    BackOff::new(FIRST_WAIT, LONGEST_WAIT)
}

/// Not a method: the stream itself cannot be shared while this waits.
async fn open(
    client: &Client,
    session: &SessionId,
    next: u64,
    pending: Arc<AtomicUsize>,
) -> Result<Messages, ClientError> {
    let url = client.url(events::STREAM.path, &[session.as_str()])?;
    let mut request = client
        .streamed(Method::GET, url)
        .query(&[("from", next)])
        .header("accept", "text/event-stream");
    if let Some(last) = next.checked_sub(1) {
        request = request.header(LAST_EVENT_ID, last);
    }
    let response = client.send(request).await?;
    Ok(messages(client, response, pending))
}

/// The messages of a stream. `pending` counts the bytes that came since it was last set to 0,
/// which whoever reads does for each message; there is a limit to one.
pub(crate) fn messages(client: &Client, response: Response, pending: Arc<AtomicUsize>) -> Messages {
    pending.store(0, Ordering::Relaxed);
    let place = client.place().to_owned();
    let bytes = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| ClientError::broken(&place, error))?;
        let waiting = pending.fetch_add(piece.len(), Ordering::Relaxed);
        if waiting + piece.len() > EVENT_BYTES_MAX {
            return Err(ClientError::Nonsense {
                problem: format!("an event is larger than {EVENT_BYTES_MAX} bytes"),
            });
        }
        Ok(piece)
    });
    let messages = bytes.eventsource().map(|message| {
        message.map_err(|error| match error {
            EventStreamError::Transport(error) => error,
            EventStreamError::Utf8(_) | EventStreamError::Parser(_) => ClientError::Nonsense {
                problem: "the stream is no stream of events".to_owned(),
            },
        })
    });
    Box::pin(messages)
}
