//! Large parts of an event, which the log keeps apart, put back for those who know no references.

use serde_json::Value;
use zareba_eventlog::{Digest, EventLog, LogError};

/// Parts of one event that are put back; an event has a handful.
const PARTS_MAX: usize = 256;

/// What they may have together: no event that the log takes is larger.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Puts every part back that the log has replaced by a reference. What would make the event larger
/// than the log takes one stays as its beginning.
pub(crate) async fn put_back(log: &EventLog, payload: &mut Value) -> Result<(), LogError> {
    put_back_within(BYTES_MAX, log, payload).await
}

async fn put_back_within(
    mut left: usize,
    log: &EventLog,
    payload: &mut Value,
) -> Result<(), LogError> {
    for _ in 0..PARTS_MAX {
        let Some(reference) = find(payload) else {
            return Ok(());
        };
        let part = match digest_of(reference) {
            Some(digest) => log.store().blob(digest).await?,
            None => None,
        };
        let part = part.filter(|part| part.len() <= left);
        left -= part.as_ref().map_or(0, |part| part.len());
        let form = reference.get("form").and_then(Value::as_str);
        let whole = match (part, form) {
            (Some(part), Some("json")) => serde_json::from_slice(&part).ok(),
            (Some(part), _) => Some(String::from_utf8_lossy(&part).into()),
            (None, _) => None,
        };
        // What is gone or too large is shown by its beginning, as the reference does.
        let whole = whole.unwrap_or_else(|| reference.get("head").cloned().unwrap_or_default());
        *reference = whole;
    }
    Ok(())
}

/// The first reference in a value.
fn find(value: &mut Value) -> Option<&mut Value> {
    if digest_of(value).is_some() {
        return Some(value);
    }
    match value {
        Value::Array(items) => items.iter_mut().find_map(find),
        Value::Object(fields) => fields.values_mut().find_map(find),
        _ => None,
    }
}

fn digest_of(value: &Value) -> Option<Digest> {
    let fields = value.as_object()?;
    let is_reference = fields.len() == 4
        && ["form", "bytes", "head"]
            .iter()
            .all(|key| fields.contains_key(*key));
    let text = fields.get("$blob").filter(|_| is_reference)?.as_str()?;
    Digest::from_hex(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zareba_eventlog::{Durability, Entry, EntryKind, Patience};
    use zareba_session::SessionId;

    use super::*;

    #[tokio::test]
    async fn what_is_put_back_has_a_bound() {
        const PART: usize = 2 * 1024 * 1024;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log").join("events.db");
        let log = EventLog::open_file(&path, Durability::Process)
            .await
            .unwrap();
        let session = SessionId::new("s").unwrap();
        let Value::Object(payload) = json!({ "a": "x".repeat(PART), "b": "y".repeat(PART) }) else {
            unreachable!("it is an object");
        };
        let entry = Entry {
            kind: EntryKind::Note,
            cause: None,
            key: None,
            payload,
        };
        let store = log.store();
        store
            .append(session.clone(), entry, Patience::None)
            .await
            .unwrap();
        let read = store.read(session, 0, 1).await.unwrap();
        let folded = Value::Object(read[0].payload.clone());
        let sizes = async |budget| {
            let mut payload = folded.clone();
            put_back_within(budget, &log, &mut payload).await.unwrap();
            ["a", "b"].map(|name| payload[name].as_str().unwrap().len() == PART)
        };
        assert_eq!(sizes(BYTES_MAX).await, [true, true]);
        assert_eq!(sizes(PART + 1).await, [true, false]);
        assert_eq!(sizes(0).await, [false, false]);
        log.store().close().await.unwrap();
    }

    #[test]
    fn only_what_has_the_form_of_a_reference_is_one() {
        let reference = json!({
            "$blob": "ab".repeat(32), "form": "text", "bytes": 1, "head": "x",
        });
        assert_eq!(digest_of(&reference), Some(Digest([0xab; 32])));
        let mut payload = json!({ "content": "x", "extras": { "list": [1, reference] } });
        assert!(find(&mut payload).is_some());
        for other in [
            json!({ "$blob": "ab".repeat(32) }),
            json!({ "$blob": "zz".repeat(32), "form": "text", "bytes": 1, "head": "x" }),
            json!({ "$blob": 7, "form": "text", "bytes": 1, "head": "x" }),
            json!("text"),
        ] {
            assert_eq!(digest_of(&other), None, "{other}");
        }
    }
}
