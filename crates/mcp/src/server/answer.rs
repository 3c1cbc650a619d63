//! What came of a call, as text that fits a model.

use rmcp::model::{CallToolResult, ContentBlock, ImageContent, JsonObject, MetaObject};
use serde_json::{Value, json};
use zareba_protocol::{CommandMetadata, OUTPUT_CHARS_MAX, Observation, ObservationKind};

use super::PlaceError;

/// How many characters of text a result has. It is what an executor leaves of the output of a
/// command, so that what was cut is told once and can be found in the file that the executor names.
pub(super) const TEXT_CHARS_MAX: usize = OUTPUT_CHARS_MAX;

/// What came of a call.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    text: String,
    /// Shown instead of the text.
    image: Option<ImageContent>,
    /// The class of the failure, if it is one.
    failure: Option<String>,
    /// For programs; models do not see it.
    facts: JsonObject,
}

impl Answer {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn failed(class: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failure: Some(class.into()),
            ..Self::default()
        }
    }

    /// A picture, in base64.
    pub(super) fn image(media_type: &str, data: &str) -> Self {
        Self {
            image: Some(ImageContent::new(data, media_type)),
            ..Self::default()
        }
    }

    /// The same with a fact for programs.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(format!("zareba/{name}"), value.into());
        self
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let text = middle_cut(&self.text, TEXT_CHARS_MAX);
        let mut result = match self.failure {
            None => {
                let block = self
                    .image
                    .map_or_else(|| ContentBlock::text(text), ContentBlock::Image);
                CallToolResult::success(vec![block])
            }
            Some(class) => {
                let error = json!({ "error": { "class": class, "message": &text } });
                let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
                result.structured_content = Some(error);
                result
            }
        };
        if !self.facts.is_empty() {
            result.meta = Some(MetaObject::from(self.facts));
        }
        result
    }
}

impl From<PlaceError> for Answer {
    fn from(error: PlaceError) -> Self {
        Self::failed(error.class.as_str(), error.message)
    }
}

/// The failure that an observation tells of, if it does.
pub(super) fn failure_of(observation: &Observation) -> Option<Answer> {
    let class = match &observation.kind {
        ObservationKind::Error { error_id } if error_id.is_empty() => "failed",
        ObservationKind::Error { error_id } => error_id.as_str(),
        // What a command writes is its own business; what never ran has neither end nor limit.
        ObservationKind::Run(output)
            if output.metadata.exit_code != CommandMetadata::NO_EXIT_CODE
                || !output.metadata.limits.is_empty()
                || !output.metadata.suffix.is_empty() =>
        {
            return None;
        }
        // So is what a file holds.
        ObservationKind::Read { .. } | ObservationKind::Glob(_) | ObservationKind::Grep(_) => {
            return None;
        }
        // Answers of shells and of the editor have their usual type also when they refuse.
        _ if observation.content.starts_with("ERROR:") => "failed",
        _ => return None,
    };
    Some(Answer::failed(class, observation.content.as_str()))
}

/// The beginning and the end of a text that is too long, with a line that says how much is
/// missing.
pub(super) fn middle_cut(text: &str, chars_max: usize) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let half = chars_max / 2;
    let head = text.char_indices().nth(half).map_or(text.len(), |at| at.0);
    let tail = text.char_indices().nth_back(half.saturating_sub(1));
    let tail = tail.map_or(text.len(), |at| at.0);
    let (head, tail) = (
        text.get(..head).unwrap_or_default(),
        text.get(tail..).unwrap_or_default(),
    );
    format!(
        "{head}\n[... {} of {count} characters are left out here ...]\n{tail}",
        count - 2 * half
    )
}

#[cfg(test)]
mod tests {
    use zareba_protocol::{CommandOutput, ErrorClass, ReadSource};

    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends_and_says_what_is_missing() {
        let text = format!("{}{}{}", "a".repeat(60), "ä".repeat(100), "z".repeat(40));
        let cut = middle_cut(&text, 100);
        assert!(cut.starts_with(&"a".repeat(50)) && cut.ends_with(&format!("ä{}", "z".repeat(40))));
        assert!(
            cut.contains("[... 100 of 200 characters are left out here ...]"),
            "{cut}"
        );
        assert_eq!(middle_cut(&text, 200), text);
    }

    #[test]
    fn a_failure_is_a_result_that_says_so_to_models_and_programs() {
        let error = PlaceError {
            class: ErrorClass::Disconnected,
            message: "the sandbox is gone".to_owned(),
        };
        let result = Answer::from(error).into_result();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(
            result.structured_content,
            Some(json!({ "error": { "class": "disconnected", "message": "the sandbox is gone" } }))
        );
    }

    #[test]
    fn what_a_command_writes_is_no_failure_of_ours() {
        let mut output = CommandOutput::new("x");
        let refused = Observation::run("ERROR: No previous running command", output.clone());
        assert!(failure_of(&refused).is_some());
        output.metadata.exit_code = 0;
        assert_eq!(failure_of(&Observation::run("ERROR: mine", output)), None);
        let read = Observation::read("ERROR: a log", "/log", ReadSource::default());
        assert_eq!(failure_of(&read), None);
        assert!(failure_of(&Observation::error("no such file")).is_some());
    }

    #[test]
    fn facts_are_for_programs() {
        let result = Answer::new("x").with("exit_code", 3).into_result();
        let result = serde_json::to_value(result).unwrap();
        assert_eq!(result["_meta"], json!({ "zareba/exit_code": 3 }));
        assert_eq!(result["isError"], false);
    }
}
