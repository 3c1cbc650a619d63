//! Secrets in what is said of tools. Records are masked on their way into the log; this is what is
//! told besides: definitions, failures and errors.

use serde_json::{Value, json};
use zareba_tools::{CommandToolSpec, LoadFailure, Origin, ToolDefinition, ToolError};

use crate::mask::{Mask, Masked};

/// A definition with secrets hidden. Its name is what it is called by, and stays.
pub(super) fn definition(mask: &Mask, mut tool: ToolDefinition) -> ToolDefinition {
    if mask.is_empty() {
        return tool;
    }
    text(mask, &mut tool.description);
    for schema in [Some(&mut tool.parameters), tool.accepts.as_mut()] {
        if let Some(Value::Object(schema)) = schema {
            mask.object(schema);
        }
    }
    match &mut tool.origin {
        Origin::Python { entrypoint } => text(mask, entrypoint),
        Origin::Command { command } => text(mask, command),
        Origin::Mcp { server } => text(mask, server),
        Origin::Rust => {}
    }
    tool
}

/// A failure with secrets hidden.
pub(super) fn failure(mask: &Mask, mut failure: LoadFailure) -> LoadFailure {
    let LoadFailure {
        entrypoint,
        kind,
        message,
        traceback,
    } = &mut failure;
    for part in [entrypoint, kind, message, traceback] {
        text(mask, part);
    }
    failure
}

/// An error with secrets hidden.
pub(super) fn error(mask: &Mask, error: ToolError) -> ToolError {
    let told = error.to_string();
    match mask.hides(&told) {
        false => error,
        true => ToolError::Unavailable {
            message: mask.text(&told).into_owned(),
            class: error.class(),
        },
    }
}

/// Whether any text of a command has a secret in it.
pub(super) fn is_in(mask: &Mask, command: &CommandToolSpec) -> bool {
    let mut texts = json!(command);
    let object = texts.as_object_mut();
    object.is_some_and(|texts| mask.object(texts) == Masked::Changed)
}

fn text(mask: &Mask, text: &mut String) {
    if mask.hides(text) {
        *text = mask.text(text).into_owned();
    }
}
