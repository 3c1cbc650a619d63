//! However much a worker says it has loaded, what is kept of that is bounded (G-1).

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::python::message::{Reply, ReplyReader};

fn loaded(line: &str) -> Option<Loaded> {
    let mut reader = ReplyReader::default();
    reader.push(line.as_bytes());
    reader.push(b"\n");
    match reader.next() {
        Ok(Some(Reply::Ready(ready))) => Some(ready.into()),
        _ => None,
    }
}

/// A message with tools whose schemas are texts of any kind.
fn ready(schemas: &[String]) -> String {
    let tools = schemas.iter().enumerate().map(|(number, schema)| {
        format!(
            r#"{{"name":"t{number}","description":"","parameters":{schema},"accepts":null,"entrypoint":"m.f"}}"#
        )
    });
    let tools: Vec<String> = tools.collect();
    format!(
        r#"{{"ready":{{"python":"3","toolkits":[],"tools":[{}],"failures":[]}}}}"#,
        tools.join(",")
    )
}

#[test]
fn g_1_a_schema_of_many_small_values_is_not_read() {
    let dense = |bytes: usize| format!(r#"{{"x":[{}1]}}"#, "[],".repeat(bytes / 3));
    let fine = r#"{"type":"object","properties":{}}"#.to_owned();
    let loaded = loaded(&ready(&[dense(20 * 1024 * 1024), fine])).unwrap();
    assert_eq!(loaded.tools.len(), 1);
    assert_eq!(loaded.failures.len(), 1);
    let told = &loaded.failures[0].message;
    assert!(told.contains("the limit is 262144"), "{told}");
}

#[test]
fn g_1_schemas_share_what_there_is_for_all() {
    let large = json!({"type": "object", "properties": {}, "x": "y".repeat(200_000)}).to_string();
    let loaded = loaded(&ready(&vec![large; 100])).unwrap();
    assert_eq!(loaded.tools.len(), 10);
    assert_eq!(loaded.failures.len(), 90);
}

#[test]
fn g_1_lists_are_cut_while_they_are_read() {
    let line = ready(&vec!["{}".to_owned(); 3000]).replace(
        r#""toolkits":[]"#,
        &format!(r#""toolkits":[{}""]"#, r#""","#.repeat(1_000_000)),
    );
    let loaded = loaded(&line).unwrap();
    assert_eq!((loaded.tools.len(), loaded.toolkits.len()), (512, 512));
    let told = &loaded.failures[0].message;
    assert!(told.contains("2488 more are left out"), "{told}");
}

#[test]
fn a_failure_is_cut_to_what_somebody_reads() {
    let failure = json!({"entrypoint": "m.f", "kind": "E", "message": "ä".repeat(100_000)});
    let line = ready(&[]).replace(r#""failures":[]"#, &format!(r#""failures":[{failure}]"#));
    let loaded = loaded(&line).unwrap();
    assert_eq!(loaded.failures[0].message.len(), FAILURE_BYTES_MAX);
}

proptest! {
    #[test]
    fn g_1_any_schema_is_taken_or_told(
        schemas in prop::collection::vec(r#"(\{("[a-z$]{1,9}":(\[\]|\{\}|"[a-z]{0,6}"|[0-9]{1,3}|null))?\}|\[\[|"x"|null)"#, 0..6),
    ) {
        if let Some(loaded) = loaded(&ready(&schemas)) {
            prop_assert_eq!(loaded.tools.len() + loaded.failures.len(), schemas.len());
        }
    }
}
