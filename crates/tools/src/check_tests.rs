//! Arguments are held to schemas, and hostile schemas cost nothing.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

fn arguments(positional: Value, named: Value) -> Arguments {
    Arguments {
        positional: positional.as_array().cloned().unwrap_or_default(),
        named: named.as_object().cloned().unwrap_or_default(),
    }
}

fn add() -> Check {
    Check::new(&json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
        "required": ["a"],
        "additionalProperties": false,
    }))
    .unwrap()
}

#[test]
fn arguments_count_by_position_and_by_name() {
    for (positional, named) in [
        (json!([1, 2]), json!({})),
        (json!([1]), json!({"b": null})),
        (json!([]), json!({"a": 1})),
    ] {
        assert_eq!(add().problems(&arguments(positional, named)), [""; 0]);
    }
}

#[test]
fn each_problem_is_named() {
    for (positional, named, problem) in [
        (json!([]), json!({}), "the object lacks `a`"),
        (
            json!([]),
            json!({"a": "x"}),
            "`a` is the text \"x\", and integer is wanted",
        ),
        (
            json!([1]),
            json!({"a": 1}),
            "`a` is given by position and by name",
        ),
        (
            json!([1, 2, 3]),
            json!({}),
            "3 are given by position, and it takes 2",
        ),
        (
            json!([1]),
            json!({"c": 1}),
            "the object has `c`, which is not known",
        ),
    ] {
        let problems = add().problems(&arguments(positional, named));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(problem), "{problems:?}");
    }
}

#[test]
fn a_variadic_function_takes_more_by_position() {
    let check = Check::new(&json!({"type": "object", "properties": {"a": {}}, "x-variadic": true}));
    let given = arguments(json!([1, 2, 3]), json!({}));
    assert_eq!(check.unwrap().problems(&given), [""; 0]);
}

#[test]
fn a_long_argument_is_not_quoted_whole() {
    let given = arguments(json!(["x".repeat(100_000)]), json!({}));
    let problems = add().problems(&given);
    assert!(problems[0].chars().count() < 400, "{}", problems[0].len());
}

#[test]
fn every_word_of_a_schema_of_functions_counts() {
    for (schema, fitting, other) in [
        (json!({"type": "integer"}), json!(1.0), json!(1.5)),
        (json!({"type": ["string", "null"]}), json!(null), json!(1)),
        (json!({"enum": ["a", 1]}), json!(1), json!("b")),
        (json!({"const": 5}), json!(5), json!(6)),
        (
            json!({"anyOf": [{"type": "null"}, {"minimum": 3}]}),
            json!(3),
            json!(2),
        ),
        (
            json!({"oneOf": [{"minimum": 3}, {"maximum": 5}]}),
            json!(6),
            json!(4),
        ),
        (
            json!({"allOf": [{"minimum": 3}, {"exclusiveMaximum": 5}]}),
            json!(4),
            json!(5),
        ),
        (
            json!({"minLength": 2, "maxLength": 3}),
            json!("äöü"),
            json!("abcd"),
        ),
        (
            json!({"items": {"type": "string"}, "maxItems": 2}),
            json!(["a"]),
            json!(["a", 1]),
        ),
        (
            json!({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}}),
            json!([null, 1]),
            json!([1, 1]),
        ),
        (
            json!({"$ref": "#/$defs/d"}),
            json!({"x": {"x": {}}}),
            json!({"x": {"x": 1}}),
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"a": 1}),
            json!({"a": "b"}),
        ),
        (json!(true), json!(1), json!(null)),
    ] {
        let definition = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d"}}});
        let whole = json!({"properties": {"v": schema}, "$defs": {"d": definition}});
        let check = Check::new(&whole).unwrap();
        let problems = |value: &Value| check.problems(&arguments(json!([value]), json!({})));
        assert_eq!(problems(&fitting), [""; 0], "{schema}");
        assert_eq!(problems(&other).is_empty(), schema == true, "{schema}");
    }
}

#[test]
fn schemas_that_make_no_sense_are_refused() {
    for (schema, problem) in [
        (json!([]), "no JSON object"),
        (json!({"type": "string"}), "not one of an object"),
        (
            json!({"$ref": "http://127.0.0.1:1/x"}),
            "which is not in it",
        ),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "which is not in it",
        ),
        (
            json!({"items": {"$ref": "#/nowhere"}}),
            "which is not in it",
        ),
        (
            json!({"description": "x".repeat(SCHEMA_BYTES_MAX)}),
            "bytes",
        ),
    ] {
        let error = Check::new(&schema).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn g_1_schemas_that_go_round_or_multiply_end_soon() {
    let round = json!({"allOf": [{"$ref": "#"}], "properties": {"a": {"$ref": "#"}}});
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    let multiplying = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    for schema in [round, multiplying] {
        let begun = Instant::now();
        let check = Check::new(&schema).unwrap();
        let problems = check.problems(&arguments(json!([]), json!({"a": "x"})));
        assert_eq!(problems, ["its schema takes too long to look at"]);
        assert!(begun.elapsed() < Duration::from_secs(10), "{schema}");
    }
}
