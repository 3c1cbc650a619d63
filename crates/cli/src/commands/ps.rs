//! `zareba ps`: the sandboxes that there are.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zareba_runtime::{SandboxState, SandboxSummary};

use crate::{
    arguments::{OutputFormat, PsArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    play::Style,
    quote,
    sandbox::Fleet,
    say,
    table::{age, painted_table},
};

const HEADINGS: [&str; 8] = [
    "ID",
    "RUNTIME",
    "STATE",
    "IMAGE",
    "NETWORK",
    "WORKSPACE",
    "CREATED",
    "COMMAND",
];

/// The column with the state.
const STATE: usize = 2;

/// Characters of a command that are shown; `inspect` shows all of it.
const COMMAND_CHARACTERS: usize = 40;

/// Prints them.
pub(crate) fn perform(context: &Context, arguments: &PsArguments) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let members = fleet.members().await?;
        let summaries = members.iter().map(|member| &member.summary);
        let listed = members
            .iter()
            .map(|member| (&member.summary, member.about()));
        let text: String = match (context.globals.output, arguments.quiet) {
            (OutputFormat::Json, _) => listed
                .map(|(summary, about)| format!("{}\n", as_json(summary, about)))
                .collect(),
            (OutputFormat::Text, true) => summaries
                .map(|summary| format!("{}\n", summary.id))
                .collect(),
            (OutputFormat::Text, false) => {
                let now = SystemTime::now();
                let rows = listed.map(|(summary, about)| row(summary, about.as_ref(), now));
                let rows: Vec<_> = rows.collect();
                let style = Style::for_stdout(&context.environment);
                painted_table(HEADINGS, &rows, |column, cell| set_off(style, column, cell))
            }
        };
        say::data(text.as_bytes())?;
        Ok(Exit::Success)
    })
}

/// One sandbox as a document, with what it was made with.
pub(super) fn as_json(summary: &SandboxSummary, about: Option<Value>) -> Value {
    let created = summary.created.duration_since(UNIX_EPOCH);
    json!({
        "id": summary.id.as_str(),
        "runtime": summary.runtime,
        "state": state(summary.state),
        "image": summary.image,
        "created_seconds": created.map_or(0, |created| created.as_secs()),
        "made_with": about,
    })
}

/// The word for a state.
pub(super) fn state(state: SandboxState) -> &'static str {
    match state {
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        SandboxState::Lost => "lost",
    }
}

/// The command of a sandbox as one line.
pub(super) fn command(about: &Value) -> Option<String> {
    let words = about.get("command")?.as_array()?.iter();
    let words: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
    match words.as_slice() {
        [] => None,
        [text] => Some(text.clone()),
        words => Some(quote::join(words)),
    }
}

/// The workspace of a sandbox, with how it appears as far as that is known.
pub(super) fn workspace(about: &Value) -> Option<String> {
    let text = |path: &str| about.pointer(path).and_then(Value::as_str);
    let directory = text("/workspace/directory")?;
    Some(match text("/workspace/mode") {
        Some(mode) => format!("{directory} ({mode})"),
        None => directory.to_owned(),
    })
}

/// States are what people look for.
fn set_off(style: Style, column: usize, cell: String) -> String {
    match cell.trim_end() {
        _ if column != STATE => cell,
        "running" => style.good(&cell),
        "paused" => style.warn(&cell),
        _ => style.bad(&cell),
    }
}

fn row(summary: &SandboxSummary, about: Option<&Value>, now: SystemTime) -> [String; 8] {
    let text = |path: &str| about?.pointer(path)?.as_str();
    let unknown = || "-".to_owned();
    let command = about.and_then(command);
    let lived = now.duration_since(summary.created).unwrap_or_default();
    [
        summary.id.to_string(),
        summary.runtime.to_owned(),
        state(summary.state).to_owned(),
        summary.image.as_deref().unwrap_or("-").to_owned(),
        text("/network/reach").map_or_else(unknown, str::to_owned),
        about.and_then(workspace).unwrap_or_else(unknown),
        format!("{} ago", age(lived)),
        command.map_or_else(unknown, |command| beginning(&command)),
    ]
}

fn beginning(command: &str) -> String {
    let mut rest = command.chars();
    let begin: String = rest.by_ref().take(COMMAND_CHARACTERS).collect();
    match rest.next() {
        Some(_) => format!("{begin}…"),
        None => begin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_was_typed_and_a_long_one_in_part() {
        let words = |words: Value| command(&json!({ "command": words }));
        assert_eq!(words(json!([])), None);
        assert_eq!(words(json!(["a | b"])).as_deref(), Some("a | b"));
        assert_eq!(words(json!(["echo", "a b"])).as_deref(), Some("echo 'a b'"));
        assert_eq!(beginning(&"ä".repeat(40)), "ä".repeat(40));
        assert_eq!(beginning(&"ä".repeat(41)), format!("{}…", "ä".repeat(40)));
    }
}
