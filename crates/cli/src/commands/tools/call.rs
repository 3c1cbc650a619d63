//! `zareba tools call`.

use serde_json::{Map, Value};
use zareba_protocol::{Observation, ObservationKind, ToolOutcome, UseTool};

use super::source::Source;
use crate::{
    arguments::{CallToolArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// Calls a tool and prints what it returns.
pub(super) fn perform(context: &Context, arguments: &CallToolArguments) -> Result<Exit, Failure> {
    let call = UseTool {
        unchecked: arguments.unchecked,
        ..UseTool::new(&arguments.tool, named(&arguments.arguments)?)
    };
    let entrypoints = &arguments.entrypoints;
    Source::visit(context, &arguments.source, entrypoints, async |source| {
        let observation = source.call(call, arguments.timeout).await?;
        show(context.globals.output, observation)
    })
}

/// Arguments as they were typed: one JSON object, or a name and a value each.
fn named(texts: &[String]) -> Result<Map<String, Value>, Failure> {
    if let [text] = texts
        && text.trim_start().starts_with('{')
    {
        let deed = "the arguments are no JSON object";
        return serde_json::from_str(text).or_fail(Exit::Usage, deed);
    }
    let pairs = texts.iter().map(|text| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            let message = format!("`{text}` is no argument");
            Failure::new(Exit::Usage, message).hint("write `name=value`, or one JSON object")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((name.to_owned(), value))
    });
    pairs.collect()
}

/// The result on standard output; words and what the tool printed on standard error.
fn show(format: OutputFormat, observation: Observation) -> Result<Exit, Failure> {
    let Observation { content, kind } = observation;
    let ObservationKind::Tool(outcome) = kind else {
        // Refused on the way: by the guard, or because the session cannot.
        say::words(content);
        return Ok(Exit::Negative);
    };
    let exit = match outcome.error {
        None => Exit::Success,
        Some(_) => Exit::Negative,
    };
    match format {
        OutputFormat::Json => {
            let line = serde_json::to_string(&outcome);
            say::line(line.or_fail(Exit::Failure, "cannot write the result")?)?;
        }
        OutputFormat::Text => show_text(&outcome)?,
    }
    Ok(exit)
}

fn show_text(outcome: &ToolOutcome) -> Result<(), Failure> {
    for printed in [&outcome.stdout, &outcome.stderr] {
        if !printed.is_empty() {
            say::words(printed.trim_end());
        }
    }
    if let Some(error) = &outcome.error {
        let told = error.traceback.as_deref().unwrap_or(&error.message);
        say::words(format_args!("error: {}", told.trim_end()));
        return Ok(());
    }
    match (&outcome.raw, &outcome.result) {
        (Some(raw), _) => say::text_of_others(raw),
        (None, Value::String(text)) => say::text_of_others(text),
        (None, value) => {
            let text = serde_json::to_string_pretty(value);
            say::text_of_others(&text.or_fail(Exit::Failure, "cannot write the result")?)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(texts: &[&str]) -> Result<Value, Failure> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        named(&texts).map(Value::Object)
    }

    #[test]
    fn arguments_are_pairs_or_one_object() {
        assert_eq!(texts(&[]), Ok(json!({})));
        assert_eq!(
            texts(&["a=1", "b=two words", "c=\"3\"", "d=[1]", "e="]),
            Ok(json!({"a": 1, "b": "two words", "c": "3", "d": [1], "e": ""}))
        );
        assert_eq!(texts(&[r#"{"a": {"b": 1}}"#]), Ok(json!({"a": {"b": 1}})));
        assert!(texts(&["{"]).is_err());
        assert!(texts(&["a"]).is_err());
    }
}
