//! Recorded traffic of the original server, one file per case.

use std::{fs, path::Path};

use serde_json::Value;

/// An event that was found in a recording, with where it stood.
pub(crate) struct Recorded {
    pub(crate) place: String,
    pub(crate) event: Value,
}

/// One recording.
pub(crate) fn load(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/openhands")
        .join(name);
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every action in the recordings, except the terse ones that were typed by hand.
pub(crate) fn actions() -> Vec<Recorded> {
    events("action", "args", |file| file != "http_endpoints.json")
}

/// Every observation in the recordings.
pub(crate) fn observations() -> Vec<Recorded> {
    events("observation", "extras", |_| true)
}

fn events(tag: &str, fields: &str, wanted: impl Fn(&str) -> bool) -> Vec<Recorded> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/openhands");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| wanted(name))
        .collect();
    names.sort();
    let mut found = Vec::new();
    for name in names {
        collect(&load(&name), &name, tag, fields, &mut found);
    }
    found
}

fn collect(value: &Value, place: &str, tag: &str, fields: &str, found: &mut Vec<Recorded>) {
    match value {
        Value::Object(object) => {
            if object.get(tag).is_some_and(Value::is_string) && object.contains_key(fields) {
                found.push(Recorded {
                    place: place.to_owned(),
                    event: value.clone(),
                });
                return;
            }
            for (key, inner) in object {
                collect(inner, &format!("{place}/{key}"), tag, fields, found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect(inner, &format!("{place}/{index}"), tag, fields, found);
            }
        }
        _ => {}
    }
}
