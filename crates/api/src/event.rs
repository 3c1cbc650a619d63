//! Actions and events: what is asked about them and what is told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use zareba_protocol::SessionId;

use crate::Seconds;

/// An action that was recorded and runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionAccepted {
    /// The session.
    #[schema(value_type = String)]
    pub session: SessionId,
    /// The action's number, by which its observation can be asked for.
    pub action: u64,
}

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number: 0, 1, 2 and so on in each session.
    pub sequence: u64,
    /// When it was recorded, by the clock on the wall: for people, never for order.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// What it tells of.
    pub kind: EventKind,
    /// The number of the event that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<u64>,
    /// The event: an action's or observation's envelope, or what happened to the session.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// The SHA-256 that chains it to the event before it, in hexadecimal.
    pub digest: String,
}

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Something was asked for.
    Action,
    /// What came of it; its cause is the action's number.
    Observation,
    /// The sandbox changed its status.
    Status,
    /// Something about the session itself: made, recovered, closed, a limit, a verdict. With
    /// `"note": "deed"`, something that was done to its sandbox beside actions: a program, a
    /// terminal, a file, a port.
    Note,
}

/// Some events, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// What to give as `from` for the next page.
    pub next: u64,
}

/// Parameters of running an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// Whether the answer is the observation, or comes at once with the action's number.
    #[serde(default = "crate::session::yes")]
    pub wait: bool,
}

/// Parameters of asking for an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuery {
    /// How long to wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Seconds>,
}

/// Parameters of reading the output of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputQuery {
    /// How many bytes of text the client has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How long to wait for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Seconds>,
    /// A ticket instead of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Parameters of stopping an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopQuery {
    /// By what means; an interruption when left out.
    #[serde(default)]
    pub means: StopMeans,
}

/// How a command is brought to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMeans {
    /// Ctrl-C at its terminal; a program may take no notice.
    #[default]
    Interrupt,
    /// Its shell is killed with everything in it; a shell with a name starts anew.
    Kill,
}

/// Parameters of reading what is too large for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobQuery {
    /// The number of the event that refers to it.
    pub event: u64,
}

/// Parameters of reading events, as a page or as a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The number of the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How many at most; of a page only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// A ticket instead of a key, for streams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}
