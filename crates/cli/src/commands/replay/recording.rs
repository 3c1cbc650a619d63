//! Reading a recorded trajectory, in whichever form it is.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
};

use serde_json::Value;
use zareba_protocol::ActionEvent;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    lines::Source,
};

/// The largest recording that is read.
const BYTES_MAX: u64 = 1 << 30;

/// One action to perform, and what came of it when it was recorded.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    /// The number of the action in the recording.
    pub(super) number: i64,
    pub(super) action: ActionEvent,
    /// None when it was never answered.
    pub(super) observation: Option<Value>,
}

/// What there is to perform, in order.
#[derive(Debug, PartialEq)]
pub(super) struct Recording {
    pub(super) steps: Vec<Step>,
}

impl Recording {
    pub(super) fn read(source: &Source) -> Result<Self, Failure> {
        let name = source.name();
        let text = text(source).or_fail(Exit::Usage, format!("cannot read `{name}`"))?;
        Self::parse(&text).map_err(|mistake| {
            Failure::new(Exit::Usage, mistake)
                .while_doing(format!("cannot replay `{name}`"))
                .hint("it takes an export of `zareba log export`, or a trajectory of OpenHands")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let events = if text.trim_start().starts_with('[') {
            let events: Vec<Value> =
                serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
            events.into_iter().enumerate().map(unwrap).collect()
        } else {
            lines(text)?
        };
        Self::of(events)
    }

    fn of(events: Vec<(i64, Value)>) -> Result<Self, String> {
        let mut answers: HashMap<i64, Value> = HashMap::new();
        let mut actions = Vec::new();
        for (number, event) in events {
            if let (Some(cause), true) = (event["cause"].as_i64(), event["observation"].is_string())
            {
                answers.entry(cause).or_insert(event);
            } else if event["action"].is_string() {
                actions.push((number, event));
            }
        }
        let mut steps = Vec::new();
        for (number, event) in actions {
            let action = ActionEvent::from_value(event)
                .map_err(|error| format!("event {number} is no action: {}", error.in_words()))?;
            if action.action.is_executable() {
                let observation = answers.remove(&number);
                steps.push(Step {
                    number,
                    action,
                    observation,
                });
            }
        }
        if steps.is_empty() {
            return Err("it holds no action that an executor performs".to_owned());
        }
        Ok(Self { steps })
    }
}

fn text(source: &Source) -> io::Result<String> {
    let reader: Box<dyn Read> = match source {
        Source::Stdin => Box::new(io::stdin()),
        Source::File(path) => Box::new(File::open(path)?),
    };
    let mut text = String::new();
    let read = reader.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > BYTES_MAX {
        let message = format!("it is larger than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// One event per line.
fn lines(text: &str) -> Result<Vec<(i64, Value)>, String> {
    let full = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    full.map(|(index, line)| {
        let value = serde_json::from_str(line)
            .map_err(|error| format!("line {} is not JSON: {error}", index + 1))?;
        Ok(unwrap((index, value)))
    })
    .collect()
}

/// The event itself with its number. A record of ours has it inside, beside what the log knows.
fn unwrap((index, value): (usize, Value)) -> (i64, Value) {
    let place = i64::try_from(index).unwrap_or(i64::MAX);
    let Value::Object(mut record) = value else {
        return (place, value);
    };
    if let Some(Value::Object(inner)) = record.remove("record") {
        record = inner;
    }
    if let (Some(number), Some(Value::Object(mut payload))) = (
        record.get("sequence").and_then(Value::as_i64),
        record.remove("payload"),
    ) {
        if let Some(cause) = record.remove("cause").filter(|cause| !cause.is_null()) {
            payload.insert("cause".to_owned(), cause);
        }
        return (number, Value::Object(payload));
    }
    let number = record.get("id").and_then(Value::as_i64).unwrap_or(place);
    (number, Value::Object(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<(i64, bool)> {
        let recording = Recording::parse(text).unwrap();
        let steps = recording.steps.iter();
        steps
            .map(|step| (step.number, step.observation.is_some()))
            .collect()
    }

    #[test]
    fn all_forms_of_a_trajectory_are_read() {
        let run = r#"{"id": 4, "action": "run", "args": {"command": "true"}}"#;
        let ran = r#"{"id": 5, "observation": "run", "content": "", "cause": 4, "extras": {}}"#;
        let said = r#"{"id": 3, "action": "message", "args": {"content": "hello"}}"#;
        assert_eq!(numbers(&format!("[{said}, {run}, {ran}]")), [(4, true)]);
        assert_eq!(numbers(&format!("{said}\n\n{run}\n{ran}\n")), [(4, true)]);
        assert_eq!(numbers(run), [(4, false)]);
        let record = r#"{"record": {"sequence": 7, "kind": "action", "cause": null, "payload": {"action": "run", "args": {"command": "true"}}}}
{"record": {"sequence": 8, "kind": "observation", "cause": 7, "payload": {"observation": "run", "content": ""}}}
{"record": {"sequence": 9, "kind": "status", "cause": null, "payload": {"status": "STATUS$READY"}}}"#;
        assert_eq!(numbers(record), [(7, true)]);
    }

    #[test]
    fn what_is_no_trajectory_is_refused_with_the_reason() {
        let mistake = |text| Recording::parse(text).unwrap_err();
        assert!(mistake("[{").starts_with("it is not JSON"));
        assert!(mistake("{}\n{").starts_with("line 2 is not JSON"));
        assert_eq!(mistake(""), "it holds no action that an executor performs");
        let unknown = r#"{"id": 2, "action": "fly", "args": {}}"#;
        assert!(
            mistake(unknown).starts_with("event 2 is no action"),
            "{}",
            mistake(unknown)
        );
    }
}
