//! The body of a call: what was asked for, or what is wrong with it in the words of the original.

use std::time::Duration;

use axum::{extract::Request, response::Response};
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};
use zareba_tools::Arguments;
use zareba_wire::serving::{BodyError, read_body};

use super::{
    answer,
    python_json::{self, Mistake},
};

/// What FastAPI says of a body that is no text, or too deep.
const UNREADABLE: &str = "There was an error parsing the body";

/// What a call asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) arguments: Arguments,
    /// Whether the answer shall have what the tool printed.
    pub(super) with_stdout: bool,
}

/// Reads what is asked of the tool `name`, or says why not.
pub(super) async fn read(
    request: Request,
    name: &str,
    bytes_max: usize,
    stall: Duration,
) -> Result<Asked, Response> {
    let is_json = is_json(request.headers());
    let body = read_body(request, bytes_max, stall).await;
    let body = body.map_err(|error| broken(&error))?;
    asked(&body, is_json, name)
}

fn asked(body: &[u8], is_json: bool, name: &str) -> Result<Asked, Response> {
    if body.is_empty() {
        return Err(answer::unfit(json!([{
            "type": "missing", "loc": ["body"], "msg": "Field required", "input": null,
        }])));
    }
    if !is_json {
        return Err(no_object(&Value::from(String::from_utf8_lossy(body))));
    }
    match parse(body)? {
        Value::Object(object) => call(object, name),
        other => Err(no_object(&other)),
    }
}

fn broken(error: &BodyError) -> Response {
    match error {
        BodyError::TooLarge { .. } => {
            answer::detail(StatusCode::PAYLOAD_TOO_LARGE, &error.to_string())
        }
        BodyError::Broken(_) => answer::detail(StatusCode::BAD_REQUEST, UNREADABLE),
    }
}

/// `application/json`, or what is derived from it. A page elsewhere cannot send these without
/// asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = text.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

fn parse(body: &[u8]) -> Result<Value, Response> {
    let unreadable = || answer::detail(StatusCode::BAD_REQUEST, UNREADABLE);
    let text = std::str::from_utf8(body).map_err(|_| unreadable())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = serde_json::from_str(text);
    let value = parsed.map_err(|error| match python_json::mistake(text) {
        Some(Mistake::Decode { character, message }) => no_json(character, message),
        Some(Mistake::TooDeep) => unreadable(),
        // Python reads it: `NaN`, half of a surrogate pair, or a number without a value.
        None => no_json(0, &format!("Not supported here: {error}")),
    })?;
    // A tool must not get another number than the one that was sent.
    if has_large_number(&value) && python_json::has_large_integer(text) {
        let message = "Not supported here: an integer of more than 64 bits";
        return Err(no_json(0, message));
    }
    Ok(value)
}

/// Whether there is a number that may have been an integer of more than 64 bits.
fn has_large_number(value: &Value) -> bool {
    const BEYOND: f64 = 9e18;
    match value {
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|it| it.abs() > BEYOND)
        }
        Value::Array(values) => values.iter().any(has_large_number),
        Value::Object(object) => object.values().any(has_large_number),
        _ => false,
    }
}

fn no_json(character: usize, message: &str) -> Response {
    answer::unfit(json!([{
        "type": "json_invalid",
        "loc": ["body", character],
        "msg": "JSON decode error",
        "input": {},
        "ctx": { "error": message },
    }]))
}

fn no_object(input: &Value) -> Response {
    answer::unfit(json!([{
        "type": "dict_type",
        "loc": ["body"],
        "msg": "Input should be a valid dictionary",
        "input": input,
    }]))
}

/// Python says of a missing key nothing but its name.
fn call(mut body: Map<String, Value>, name: &str) -> Result<Asked, Response> {
    let args = body
        .remove("args")
        .ok_or_else(|| answer::failed("'args'"))?;
    let kwargs = body
        .remove("kwargs")
        .ok_or_else(|| answer::failed("'kwargs'"))?;
    let named = named(kwargs, name).map_err(|message| answer::failed(&message))?;
    let positional = positional(args, name).map_err(|message| answer::failed(&message))?;
    let with_stdout = body.get("redirect_stdout").is_some_and(is_true);
    Ok(Asked {
        arguments: Arguments { positional, named },
        with_stdout,
    })
}

fn named(value: Value, name: &str) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        other => {
            let kind = python_type(&other);
            Err(format!(
                "{name}() argument after ** must be a mapping, not {kind}"
            ))
        }
    }
}

/// Whatever Python can go through: a text by its characters, an object by its keys.
fn positional(value: Value, name: &str) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(values) => Ok(values),
        Value::String(text) => Ok(text
            .chars()
            .map(|letter| Value::from(letter.to_string()))
            .collect()),
        Value::Object(object) => Ok(object
            .into_iter()
            .map(|(key, _)| Value::from(key))
            .collect()),
        other => {
            let kind = python_type(&other);
            Err(format!(
                "{name}() argument after * must be an iterable, not {kind}"
            ))
        }
    }
}

fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// What Python takes for true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use http::HeaderValue;

    use super::*;

    async fn refused(body: &[u8], is_json: bool) -> (u16, String) {
        let response = asked(body, is_json, "echo").unwrap_err();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn read_as(body: &str) -> Asked {
        asked(body.as_bytes(), true, "echo").unwrap()
    }

    #[test]
    fn a_call_has_positional_and_named_arguments() {
        let asked = read_as(r#"{"args": [1, "x"], "kwargs": {"b": 2}, "more": 0}"#);
        assert_eq!(asked.arguments.positional, [json!(1), json!("x")]);
        assert_eq!(Value::from(asked.arguments.named), json!({ "b": 2 }));
        assert!(!asked.with_stdout);
    }

    #[test]
    fn arguments_are_whatever_python_can_go_through() {
        let text = read_as(r#"{"args": "né", "kwargs": {}}"#);
        assert_eq!(text.arguments.positional, [json!("n"), json!("é")]);
        let object = read_as(r#"{"args": {"b": 1, "a": 2}, "kwargs": {}}"#);
        assert_eq!(object.arguments.positional, [json!("b"), json!("a")]);
    }

    #[test]
    fn output_is_wanted_by_what_python_takes_for_true() {
        for (flag, expected) in [
            ("null", false),
            ("false", false),
            ("0", false),
            ("0.0", false),
            ("\"\"", false),
            ("[]", false),
            ("{}", false),
            ("true", true),
            ("1", true),
            ("\"no\"", true),
            ("[0]", true),
            ("{\"a\": 1}", true),
        ] {
            let body = format!(r#"{{"args":[],"kwargs":{{}},"redirect_stdout":{flag}}}"#);
            assert_eq!(read_as(&body).with_stdout, expected, "{flag}");
        }
    }

    #[tokio::test]
    async fn missing_and_unfit_arguments_are_failures_of_the_call() {
        for (body, message) in [
            ("{}", "'args'"),
            (r#"{"kwargs":{}}"#, "'args'"),
            (r#"{"args":[]}"#, "'kwargs'"),
            (
                r#"{"args":null,"kwargs":{}}"#,
                "echo() argument after * must be an iterable, not NoneType",
            ),
            (
                r#"{"args":1.5,"kwargs":{}}"#,
                "echo() argument after * must be an iterable, not float",
            ),
            (
                r#"{"args":1,"kwargs":true}"#,
                "echo() argument after ** must be a mapping, not bool",
            ),
        ] {
            let expected =
                format!(r#"{{"detail":"Internal Server Error","error_message":"{message}"}}"#);
            assert_eq!(
                refused(body.as_bytes(), true).await,
                (500, expected),
                "{body}"
            );
        }
    }

    #[tokio::test]
    async fn bodies_that_are_no_object_are_told_to_the_byte() {
        let dict = |input: &str| {
            format!(
                r#"{{"detail":[{{"type":"dict_type","loc":["body"],"msg":"Input should be a valid dictionary","input":{input}}}]}}"#
            )
        };
        for (body, input) in [("[]", "[]"), ("1e5", "100000.0"), ("null", "null")] {
            assert_eq!(refused(body.as_bytes(), true).await, (422, dict(input)));
        }
        // No JSON by its type, whatever it is.
        assert_eq!(refused(b"{}", false).await, (422, dict("\"{}\"")));
        let missing =
            r#"{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]}"#;
        assert_eq!(refused(b"", true).await, (422, missing.to_owned()));
        let invalid = r#"{"detail":[{"type":"json_invalid","loc":["body",1],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting property name enclosed in double quotes"}}]}"#;
        assert_eq!(refused(b"{", true).await, (422, invalid.to_owned()));
        let unreadable = r#"{"detail":"There was an error parsing the body"}"#.to_owned();
        for body in [&b"\xff\xff"[..], &[b'['; 2000]] {
            assert_eq!(refused(body, true).await, (400, unreadable.clone()));
        }
    }

    #[tokio::test]
    async fn numbers_that_would_change_on_the_way_are_refused() {
        for number in [
            "123456789012345678901234567890",
            "NaN",
            "-Infinity",
            "1e999",
        ] {
            let body = format!(r#"{{"args":[{number}],"kwargs":{{}}}}"#);
            let (status, told) = refused(body.as_bytes(), true).await;
            assert_eq!(status, 422, "{number}");
            assert!(told.contains("Not supported here"), "{told}");
        }
        for number in ["18446744073709551615", "-9223372036854775808", "1e30"] {
            let asked = read_as(&format!(r#"{{"args":[{number}],"kwargs":{{}}}}"#));
            assert_eq!(asked.arguments.positional.len(), 1, "{number}");
        }
    }

    #[test]
    fn the_content_type_decides_what_is_json() {
        for (content_type, expected) in [
            ("application/json", true),
            ("APPLICATION/JSON", true),
            ("application/json; charset=utf-8", true),
            ("application/foo+json", true),
            ("text/json", false),
            ("application/jsonx", false),
            ("text/plain", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            assert_eq!(is_json(&headers), expected, "{content_type}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
