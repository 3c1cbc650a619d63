//! `zareba action`: actions as JSON lines in, observations out.

use std::{sync::Arc, time::Instant};

use serde_json::Value;
use zareba_protocol::ActionEvent;
use zareba_runtime::Sandbox;

use crate::{
    arguments::{ActionArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::Failure,
    lines::{Line, Lines, Source},
    play::{Play, Style},
    sandbox, say,
};

/// What stands for the sandbox's directory, because editing takes absolute paths and a fresh
/// sandbox has a directory that nobody knows before.
const WORKSPACE: &str = "{{workspace}}";

/// Performs every action of the file in one sandbox.
pub(crate) fn perform(context: &Context, arguments: &ActionArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    let source = Source::of(&arguments.file);
    let name = source.name();
    let mut lines = Lines::read(source)?;
    let play = Play::new(Style::for_stdout(&context.environment));
    sandbox::within(context, &configuration, async |sandbox| {
        let stage = Stage {
            sandbox,
            play,
            format: context.globals.output,
        };
        let mut exit = Exit::Success;
        while let Some(line) = lines.next().await? {
            let Err(mistake) = stage.perform(&line).await? else {
                continue;
            };
            say::words(format_args!("error: {name}:{}: {mistake}", line.number));
            exit = Exit::Negative;
            if !arguments.keep_going {
                say::words("  hint: `--keep-going` goes on after such a line");
                break;
            }
        }
        Ok(exit)
    })
}

/// Where actions are performed and shown.
struct Stage {
    sandbox: Arc<dyn Sandbox>,
    play: Play,
    format: OutputFormat,
}

impl Stage {
    /// Performs the action of a line. What is wrong with the line is in the inner result.
    async fn perform(&self, line: &Line) -> Result<Result<(), String>, Failure> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(Ok(()));
        }
        if let Some(remark) = text.strip_prefix('#') {
            if self.format == OutputFormat::Text {
                say::data(self.play.remark(remark.trim()).as_bytes())?;
            }
            return Ok(Ok(()));
        }
        let action = match self.decode(text) {
            Ok(action) => action,
            Err(mistake) => return Ok(Err(mistake)),
        };
        if self.format == OutputFormat::Text {
            say::data(self.play.action(&action).as_bytes())?;
        }
        let started = Instant::now();
        let answer = self.sandbox.run_action(action).await;
        let took = started.elapsed();
        let observation = answer.map_err(|error| sandbox::failure(&error))?;
        match self.format {
            OutputFormat::Text => {
                say::data(self.play.observation(&observation, took).as_bytes())?;
            }
            OutputFormat::Json => say::line(observation.to_json())?,
        }
        Ok(Ok(()))
    }

    fn decode(&self, text: &str) -> Result<ActionEvent, String> {
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let workspace = self.sandbox.workspace().to_string_lossy();
        fill_in(&mut value, &workspace);
        ActionEvent::from_value(value).map_err(|error| error.in_words())
    }
}

/// Puts the directory into every string. The nesting is as deep as the parser allows.
fn fill_in(value: &mut Value, workspace: &str) {
    match value {
        Value::String(text) if text.contains(WORKSPACE) => {
            *text = text.replace(WORKSPACE, workspace)
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, workspace)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|item| fill_in(item, workspace)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workspace_is_filled_in_wherever_a_string_names_it() {
        let mut value =
            json!({"args": {"path": "{{workspace}}/a", "n": 1}, "list": ["{{workspace}}"]});
        fill_in(&mut value, "/tmp/x");
        assert_eq!(
            value,
            json!({"args": {"path": "/tmp/x/a", "n": 1}, "list": ["/tmp/x"]})
        );
    }
}
