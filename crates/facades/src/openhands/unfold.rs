//! Large parts of an event, which the log keeps apart, put back for those who know no references.

use serde_json::Value;
use zareba_eventlog::{Digest, EventLog, LogError};

/// Parts of one event that are put back; an event has a handful.
const PARTS_MAX: usize = 256;

/// Puts every part back that the log has replaced by a reference.
pub(super) async fn put_back(log: &EventLog, payload: &mut Value) -> Result<(), LogError> {
    for _ in 0..PARTS_MAX {
        let Some(reference) = find(payload) else {
            return Ok(());
        };
        let part = match digest_of(reference) {
            Some(digest) => log.store().blob(digest).await?,
            None => None,
        };
        let form = reference.get("form").and_then(Value::as_str);
        let whole = match (part, form) {
            (Some(part), Some("json")) => serde_json::from_slice(&part).ok(),
            (Some(part), _) => Some(String::from_utf8_lossy(&part).into()),
            (None, _) => None,
        };
        // What is gone is shown by its beginning, as the reference does.
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
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, place) in digest.iter_mut().zip(0..) {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(Digest(digest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
