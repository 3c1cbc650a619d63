//! The texts of request validation: what the original's framework writes, as Python shows it.

use serde_json::Value;
use zareba_protocol::python_repr;

use super::answer::Refusal;

/// A required body field or query parameter is missing. `input` is what was there instead.
pub(super) fn missing(place: &str, name: &str, input: &Value) -> Refusal {
    one(format!(
        "{{'type': 'missing', 'loc': ({}, {}), 'msg': 'Field required', 'input': {}}}",
        python_repr::of_str(place),
        python_repr::of_str(name),
        python_repr::of(input),
    ))
}

/// The body is JSON but no object.
pub(super) fn body_is_no_object(input: &Value) -> Refusal {
    one(format!(
        "{{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should be a valid \
         dictionary or object to extract fields from', 'input': {}}}",
        python_repr::of(input),
    ))
}

/// The `action` in the body is no object.
pub(super) fn action_is_no_object(input: &Value) -> Refusal {
    one(format!(
        "{{'type': 'dict_type', 'loc': ('body', 'action'), 'msg': 'Input should be a valid \
         dictionary', 'input': {}}}",
        python_repr::of(input),
    ))
}

/// The body is no JSON; the parser's words stand where the original has its own.
pub(super) fn body_is_no_json(error: &serde_json::Error) -> Refusal {
    one(format!(
        "{{'type': 'json_invalid', 'loc': ('body', {}), 'msg': 'JSON decode error', 'input': {{}}, \
         'ctx': {{'error': {}}}}}",
        error.column(),
        python_repr::of_str(&error.to_string()),
    ))
}

/// A truth value that is none of the known words.
pub(super) fn no_boolean(name: &str, input: &str) -> Refusal {
    one(format!(
        "{{'type': 'bool_parsing', 'loc': ('query', {}), 'msg': 'Input should be a valid boolean, \
         unable to interpret input', 'input': {}}}",
        python_repr::of_str(name),
        python_repr::of_str(input),
    ))
}

/// A parameter that must be one of a few words.
pub(super) fn no_such_word(name: &str, words: &str, input: &str) -> Refusal {
    one(format!(
        "{{'type': 'literal_error', 'loc': ('query', {}), 'msg': {}, 'input': {}}}",
        python_repr::of_str(name),
        python_repr::of_str(&format!("Input should be {words}")),
        python_repr::of_str(input),
    ))
}

/// A truth value in the words that the original's framework knows.
pub(super) fn boolean(name: &str, input: &str) -> Result<bool, Refusal> {
    match input.to_ascii_lowercase().as_str() {
        "1" | "on" | "t" | "true" | "y" | "yes" => Ok(true),
        "0" | "off" | "f" | "false" | "n" | "no" => Ok(false),
        _ => Err(no_boolean(name, input)),
    }
}

fn one(error: String) -> Refusal {
    Refusal::invalid_parameters(format!("[{error}]"))
}
