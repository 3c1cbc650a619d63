//! The committed OpenAPI document is the one that the code writes.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use zareba_api::{Access, ErrorCode, Method, openapi, operations};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/zareba.json");

#[test]
fn the_committed_document_is_current() {
    let mut written = serde_json::to_string_pretty(&openapi()).unwrap();
    written.push('\n');
    if std::env::var_os("ZAREBA_UPDATE_OPENAPI").is_some() {
        fs::create_dir_all(Path::new(COMMITTED).parent().unwrap()).unwrap();
        fs::write(COMMITTED, &written).unwrap();
    }
    let committed = fs::read_to_string(COMMITTED).unwrap_or_default();
    assert!(
        committed == written,
        "openapi/zareba.json is out of date: run this test with ZAREBA_UPDATE_OPENAPI=1 and \
         read the difference"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    let document = openapi();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 10, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get("$ref") {
                references.insert(target.clone());
            }
            object.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// HS-1: the only thing that everyone may use is the question whether the server answers. HS-7:
/// looking never changes anything, so nothing that changes something is a GET.
#[test]
fn only_liveness_is_public() {
    let public: Vec<&str> = operations::all()
        .filter(|operation| operation.access == Access::Public)
        .map(|operation| operation.path)
        .collect();
    assert_eq!(public, ["/v1/health"]);
}

#[test]
fn operations_have_names_and_places_of_their_own() {
    let mut names = BTreeSet::new();
    let mut places = BTreeSet::new();
    for operation in operations::all() {
        assert!(names.insert(operation.id), "{}", operation.id);
        let place = (operation.path, operation.method.as_str());
        assert!(places.insert(place), "{place:?}");
        assert!(!operation.answers.is_empty(), "{}", operation.id);
        let takes_body = operation.body.is_some();
        let may_take = matches!(operation.method, Method::Post | Method::Put | Method::Patch);
        assert!(!takes_body || may_take, "{}", operation.id);
    }
}

#[test]
fn error_codes_are_the_words_that_are_written() {
    let mut words = BTreeSet::new();
    for &code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(words.insert(code.as_str()), "{code:?}");
        assert!((400..=599).contains(&code.status()), "{code:?}");
    }
    let document = openapi();
    let listed = document.pointer("/components/schemas/ErrorCode/enum");
    let listed: Vec<&str> = listed
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    let words: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(listed, words);
}
