//! Keeps what others write from looking like a reference of ours.
//!
//! A field that is called `$blob`, with one `$` or more, gets one more on its way in. What is
//! called `$blob` in a record is therefore made by the folding, and nothing else.

use serde_json::{Map, Value};

/// The name of the field that makes a reference.
const NAME: &str = "blob";

/// Whether there was anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaped {
    Some,
    Nothing,
}

/// Escapes a payload that nobody has vouched for. Its depth must have been checked.
pub(super) fn all(payload: &mut Map<String, Value>) -> Escaped {
    if !object_has(payload) {
        return Escaped::Nothing;
    }
    rename(payload, &|name| {
        is_special(name).then(|| format!("${name}"))
    });
    Escaped::Some
}

/// What was written, from what is recorded.
pub(crate) fn undo(payload: &mut Map<String, Value>) {
    rename(payload, &|name| {
        let shorter = name.strip_prefix('$')?;
        is_special(shorter).then(|| shorter.to_owned())
    });
}

fn is_special(name: &str) -> bool {
    name.starts_with('$') && name.trim_start_matches('$') == NAME
}

fn object_has(object: &Map<String, Value>) -> bool {
    object
        .iter()
        .any(|(name, value)| is_special(name) || has(value))
}

fn has(value: &Value) -> bool {
    match value {
        Value::Object(object) => object_has(object),
        Value::Array(items) => items.iter().any(has),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Gives fields the names that `new_name` has for them, at every depth and in their old order.
fn rename(object: &mut Map<String, Value>, new_name: &impl Fn(&str) -> Option<String>) {
    let fields = std::mem::take(object);
    for (name, mut value) in fields {
        rename_in(&mut value, new_name);
        let name = new_name(&name).unwrap_or(name);
        object.insert(name, value);
    }
}

fn rename_in(value: &mut Value, new_name: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::Object(object) => rename(object, new_name),
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in(item, new_name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_reference_is_none_any_more_and_can_be_had_back() {
        let written = json!({
            "a": [{ "$blob": "x", "n": 1, "$$blob": { "$blob": 2 } }],
            "$blob": 3, "blob": 4, "$blobs": 5, "$": 6,
        });
        let mut payload = written.as_object().unwrap().clone();
        assert_eq!(all(&mut payload), Escaped::Some);
        let escaped = json!({
            "a": [{ "$$blob": "x", "n": 1, "$$$blob": { "$$blob": 2 } }],
            "$$blob": 3, "blob": 4, "$blobs": 5, "$": 6,
        });
        assert_eq!(Value::from(payload.clone()), escaped);
        undo(&mut payload);
        assert_eq!(Value::from(payload), written);
        let mut plain = json!({ "a": [{ "b": "$blob" }] })
            .as_object()
            .unwrap()
            .clone();
        assert_eq!(all(&mut plain), Escaped::Nothing);
    }
}
