//! What came of a call, as the observation that an agent reads.

use zareba_protocol::{Observation, ObservationKind, ToolFailure, ToolOutcome, truncate_middle};

use crate::{Returned, ToolError};

/// The observation of a call. The text is for the agent and shortened in its middle when long;
/// what comes beside it is whole.
pub fn observation(tool: &str, result: Result<Returned, ToolError>) -> Observation {
    let outcome = match result {
        Ok(returned) => succeeded(tool, returned),
        Err(error) => failed(tool, error),
    };
    Observation {
        content: truncate_middle(&text(&outcome)).into_owned(),
        kind: ObservationKind::Tool(Box::new(outcome)),
    }
}

fn succeeded(tool: &str, returned: Returned) -> ToolOutcome {
    let (result, raw) = returned.value_and_raw();
    ToolOutcome {
        name: tool.to_owned(),
        result,
        raw,
        stdout: returned.stdout,
        stderr: returned.stderr,
        truncated: returned.is_truncated,
        error: None,
    }
}

fn failed(tool: &str, error: ToolError) -> ToolOutcome {
    let (kind, class) = (error.kind().to_owned(), error.class());
    let told = error.to_string();
    let (message, traceback, printed) = match error {
        ToolError::Raised(it) => (
            it.message,
            Some(it.traceback).filter(|text| !text.is_empty()),
            (it.stdout, it.stderr, it.is_truncated),
        ),
        ToolError::Exited(it) => (told, None, (it.stdout, it.stderr, it.is_truncated)),
        ToolError::NotJson(it) => (told, None, (it.stdout, it.stderr, it.is_truncated)),
        _ => (told, None, (String::new(), String::new(), false)),
    };
    let (stdout, stderr, truncated) = printed;
    ToolOutcome {
        name: tool.to_owned(),
        stdout,
        stderr,
        truncated,
        error: Some(ToolFailure {
            kind,
            class,
            message,
            traceback,
        }),
        ..ToolOutcome::default()
    }
}

/// What an agent reads: the result, or why there is none, and what was printed.
fn text(outcome: &ToolOutcome) -> String {
    let mut text = match (&outcome.error, &outcome.raw) {
        (Some(error), _) => match &error.traceback {
            Some(traceback) => format!("ERROR: {}", traceback.trim_end()),
            None => format!("ERROR: {}", error.message),
        },
        (None, Some(raw)) => raw.clone(),
        (None, None) => match outcome.result.as_str() {
            Some(text) => text.to_owned(),
            None => outcome.result.to_string(),
        },
    };
    for (name, printed) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !printed.is_empty() {
            text.push_str(&format!("\n[{name}]\n{}", printed.trim_end()));
        }
    }
    if outcome.truncated {
        text.push_str("\n[it printed more than is kept]");
    }
    text
}

#[cfg(test)]
mod tests {
    use zareba_protocol::ErrorClass;

    use super::*;
    use crate::Exception;

    #[test]
    fn an_agent_reads_the_result_and_what_was_printed() {
        let returned = Returned {
            json: "\"fine\"".to_owned(),
            stdout: "step 1\n".to_owned(),
            ..Returned::default()
        };
        let observation = observation("t", Ok(returned));
        assert_eq!(observation.content, "fine\n[stdout]\nstep 1");
        assert_eq!(observation.success(), Some(true));
    }

    #[test]
    fn what_strict_json_cannot_say_stays_readable() {
        let returned = Returned {
            json: "[NaN]".to_owned(),
            ..Returned::default()
        };
        let observation = observation("t", Ok(returned));
        let ObservationKind::Tool(outcome) = observation.kind else {
            panic!("no tool");
        };
        assert_eq!(outcome.result, serde_json::json!([null]));
        assert_eq!(outcome.raw.as_deref(), Some("[NaN]"));
    }

    #[test]
    fn a_failure_has_its_type_its_class_and_where_it_came_from() {
        let exception = Exception {
            kind: "ValueError".to_owned(),
            message: "no".to_owned(),
            traceback: "Traceback: ValueError: no\n".to_owned(),
            ..Exception::default()
        };
        let observation = observation("t", Err(ToolError::Raised(Box::new(exception))));
        assert_eq!(observation.content, "ERROR: Traceback: ValueError: no");
        let ObservationKind::Tool(outcome) = observation.kind else {
            panic!("no tool");
        };
        assert_eq!(
            outcome.error,
            Some(ToolFailure {
                kind: "ValueError".to_owned(),
                class: ErrorClass::Invalid,
                message: "no".to_owned(),
                traceback: Some("Traceback: ValueError: no\n".to_owned()),
            })
        );
    }
}
