//! What clients must not see, hidden in what they are told.

use std::{borrow::Cow, fmt, sync::Arc};

use rmcp::model::{CallToolResult, Tool};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::answer::Answer;

/// A text with everything hidden in it that must not be seen.
pub type Hide = dyn for<'a> Fn(&'a str) -> Cow<'a, str> + Send + Sync;

/// Hides texts in results and definitions, or nothing.
#[derive(Clone, Default)]
pub(super) struct Veil(Option<Arc<Hide>>);

impl Veil {
    pub(super) fn new(hide: Arc<Hide>) -> Self {
        Self(Some(hide))
    }

    /// A result with texts hidden. One that makes no sense without them is a failure.
    pub(super) fn result(&self, result: CallToolResult) -> CallToolResult {
        let Some(hide) = self.0.as_deref() else {
            return result;
        };
        let failure = || Answer::failed("failed", "the result cannot be shown").into_result();
        hidden(hide, &result).unwrap_or_else(failure)
    }

    /// A definition with texts hidden. Its name is what it is called by, and stays. `None` for one
    /// that makes no sense without them.
    pub(super) fn definition(&self, tool: Tool) -> Option<Tool> {
        let Some(hide) = self.0.as_deref() else {
            return Some(tool);
        };
        let mut shown: Tool = hidden(hide, &tool)?;
        shown.name = tool.name;
        Some(shown)
    }
}

impl fmt::Debug for Veil {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Veil")
            .field("is_there", &self.0.is_some())
            .finish()
    }
}

fn hidden<T: Serialize + DeserializeOwned>(hide: &Hide, told: &T) -> Option<T> {
    let mut value = serde_json::to_value(told).ok()?;
    hide_in(hide, &mut value);
    serde_json::from_value(value).ok()
}

/// The depth of JSON that comes to us is bounded by its parser, and so is this recursion.
fn hide_in(hide: &Hide, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = hide(text) {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide_in(hide, value)),
        Value::Object(object) => {
            let named = std::mem::take(object).into_iter();
            *object = named
                .map(|(name, mut value)| {
                    hide_in(hide, &mut value);
                    (hide(&name).into_owned(), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn veil(secret: &'static str) -> Veil {
        Veil::new(Arc::new(move |text| {
            if text.contains(secret) {
                return text.replace(secret, "***").into();
            }
            text.into()
        }))
    }

    #[test]
    fn every_part_of_a_result_is_hidden() {
        let result = json!({
            "content": [{ "type": "text", "text": "a s3cret" }],
            "structuredContent": { "s3cret": ["s3cret", 1, null] },
            "isError": false,
            "_meta": { "zareba/shell": "s3cret" },
        });
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let shown = serde_json::to_value(veil("s3cret").result(result.clone())).unwrap();
        assert_eq!(shown["content"][0]["text"], "a ***");
        assert_eq!(
            shown["structuredContent"],
            json!({ "***": ["***", 1, null] })
        );
        assert_eq!(shown["_meta"]["zareba/shell"], "***");
        assert_eq!(Veil::default().result(result.clone()), result);
    }

    #[test]
    fn what_makes_no_sense_without_it_is_not_shown() {
        let result = Answer::new("a text").into_result();
        let shown = veil("text").result(result);
        assert_eq!(shown.is_error, Some(true));
    }

    #[test]
    fn a_tool_keeps_its_name() {
        let tool = json!({
            "name": "s3cret_tool",
            "description": "Needs s3cret.",
            "inputSchema": { "type": "object", "title": "s3cret" },
        });
        let tool: Tool = serde_json::from_value(tool).unwrap();
        let shown = serde_json::to_value(veil("s3cret").definition(tool).unwrap()).unwrap();
        assert_eq!(shown["name"], "s3cret_tool");
        assert_eq!(shown["description"], "Needs ***.");
        assert_eq!(shown["inputSchema"]["title"], "***");
    }
}
