//! Events as they are written down and as they are shown.
//!
//! The log knows the number, the time and the cause of each record, so that payloads do not
//! repeat them; [`event_json`] puts them back.

use serde_json::{Map, Value, json};
use zareba_eventlog::{Entry, EntryKind, IdempotencyKey, Record};
use zareba_protocol::{
    ActionEvent, DecodeError, Observation, ObservationEvent, RuntimeStatus, StatusLevel,
};

use crate::{
    Requester, SessionError, SessionState,
    mask::{Mask, Masked},
};

/// In an action's payload: something in it was hidden, so that it cannot be run from here.
const MASKED: &str = "masked";

/// In an action's payload: the digest of all that was asked for, to know a repetition by.
const REQUEST_DIGEST: &str = "request_digest";

/// In an action's payload: the client that asked for it. It is no part of what was asked for.
const REQUESTER: &str = "by";

/// What of an envelope the record itself knows, or only the executor needs.
const OF_THE_RECORD: [&str; 4] = ["id", "timestamp", "cause", "once"];

/// A record as an event of the wire: its payload with its number, time and cause.
pub fn event_json(record: &Record) -> Value {
    let mut event = Map::with_capacity(record.payload.len() + 3);
    event.insert("id".to_owned(), record.sequence.into());
    let time = record.time.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string();
    event.insert("timestamp".to_owned(), time.into());
    if let Some(cause) = record.cause {
        event.insert("cause".to_owned(), cause.into());
    }
    for (key, value) in &record.payload {
        if key != REQUEST_DIGEST {
            event.insert(key.clone(), value.clone());
        }
    }
    event.into()
}

/// An action on its way into the log.
pub(crate) fn action_entry(
    action: &ActionEvent,
    key: Option<IdempotencyKey>,
    requester: Option<&Requester>,
    mask: &Mask,
) -> Entry {
    let mut payload = envelope(action.to_value());
    if mask.object(&mut payload) == Masked::Changed {
        payload.insert(MASKED.to_owned(), true.into());
    }
    if key.is_some() {
        let digest = digest(&payload);
        payload.insert(REQUEST_DIGEST.to_owned(), digest.into());
    }
    if let Some(requester) = requester {
        payload.insert(REQUESTER.to_owned(), requester.to_value());
    }
    let cause = action.cause.and_then(|cause| u64::try_from(cause).ok());
    Entry {
        kind: EntryKind::Action,
        cause,
        key,
        payload,
    }
}

/// Whether a record is of the very action that an entry asks for.
pub(crate) fn is_same_request(record: &Record, entry: &Map<String, Value>) -> bool {
    record.kind == EntryKind::Action
        && record.payload.get(REQUEST_DIGEST) == entry.get(REQUEST_DIGEST)
}

/// The action of a record, unless a part of it is not in the log.
pub(crate) fn recorded_action(record: &Record) -> Result<Option<ActionEvent>, DecodeError> {
    if record.payload.get(MASKED).is_some() || record.payload.contains_key("$blob") {
        return Ok(None);
    }
    let mut payload = record.written_payload();
    payload.shift_remove(REQUESTER);
    let as_asked = Record {
        payload,
        ..record.clone()
    };
    ActionEvent::from_value(event_json(&as_asked)).map(Some)
}

/// The client that asked for the action of a record.
pub(crate) fn recorded_requester(record: &Record) -> Option<Requester> {
    record
        .payload
        .get(REQUESTER)
        .and_then(Requester::from_value)
}

/// What came of an action, on its way into the log.
pub(crate) fn observation_entry(action: u64, answer: &ObservationEvent, mask: &Mask) -> Entry {
    let mut payload = envelope(answer.to_value());
    mask.object(&mut payload);
    entry(EntryKind::Observation, Some(action), payload)
}

/// A change of status, on its way into the log.
pub(crate) fn status_entry(
    status: RuntimeStatus,
    message: &str,
    state: SessionState,
    mask: &Mask,
) -> Entry {
    let level = match status.level() {
        StatusLevel::Info => "info",
        StatusLevel::Error => "error",
    };
    let payload = json!({
        "status": status.as_str(),
        "level": level,
        "message": mask.text(message),
        "state": state.as_str(),
    });
    entry(EntryKind::Status, None, object(payload))
}

/// Something about the session itself, on its way into the log.
pub(crate) fn note_entry(cause: Option<u64>, note: &str, mut more: Map<String, Value>) -> Entry {
    more.insert("note".to_owned(), note.into());
    entry(EntryKind::Note, cause, more)
}

/// An observation that tells an agent why there is no other.
pub(crate) fn failure(error_id: &str, text: impl Into<String>) -> ObservationEvent {
    Observation::named_error(error_id, text).into()
}

/// The same by the class of an error.
pub(crate) fn failure_of(error: &SessionError) -> ObservationEvent {
    failure(error.class().as_str(), format!("ERROR: {}", told(error)))
}

/// What those outside are told of an error: what failed and how that counts. Its causes, which
/// speak of this machine, are for the program's own log.
pub(crate) fn told(error: &SessionError) -> String {
    let text = without_paths(&error.to_string());
    format!("{text} ({})", error.class().as_str())
}

/// A text without paths of this machine: nobody outside needs to know where things are.
pub(crate) fn without_paths(text: &str) -> String {
    let begins = |before: Option<char>| {
        before.is_none_or(|before| before.is_whitespace() || "`'\"([=:,".contains(before))
    };
    let goes_on = |c: char| !c.is_whitespace() && !"`'\")],;:".contains(c);
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_path = c == '/'
            && begins(before)
            && rest
                .peek()
                .is_some_and(|next| *next != '/' && goes_on(*next));
        if is_path {
            while rest.next_if(|next| goes_on(*next)).is_some() {}
            shown.push_str("<path>");
        } else {
            shown.push(c);
        }
        before = Some(c);
    }
    shown
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn entry(kind: EntryKind, cause: Option<u64>, payload: Map<String, Value>) -> Entry {
    Entry {
        kind,
        cause,
        key: None,
        payload,
    }
}

fn envelope(event: Value) -> Map<String, Value> {
    let mut payload = object(event);
    for key in OF_THE_RECORD {
        payload.shift_remove(key);
    }
    payload
}

/// Of the masked action, so that it tells nothing of what was hidden.
fn digest(payload: &Map<String, Value>) -> String {
    use sha2::Digest as _;
    let text = serde_json::to_vec(payload).unwrap_or_default();
    let digest = sha2::Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hs_18_paths_of_this_machine_are_not_told() {
        for (text, shown) in [
            (
                "cannot open `/var/lib/zareba/x`: denied",
                "cannot open `<path>`: denied",
            ),
            ("/a/b c", "<path> c"),
            ("(/a), path=/b", "(<path>), path=<path>"),
            (
                "get https://ghcr.io/v2/x: 404",
                "get https://ghcr.io/v2/x: 404",
            ),
            ("1/2 of a / b and x/y", "1/2 of a / b and x/y"),
        ] {
            assert_eq!(without_paths(text), shown);
        }
    }
}
