//! `zareba ps`: the sandboxes that there are.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zareba_runtime::{SandboxState, SandboxSummary};

use crate::{
    arguments::{OutputFormat, PsArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::Fleet,
    say,
    table::{age, table},
};

const HEADINGS: [&str; 5] = ["ID", "RUNTIME", "STATE", "IMAGE", "CREATED"];

/// Prints them.
pub(crate) fn perform(context: &Context, arguments: &PsArguments) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let members = fleet.members().await?;
        let summaries = members.iter().map(|member| &member.summary);
        let text: String = match (context.globals.output, arguments.quiet) {
            (OutputFormat::Json, _) => summaries
                .map(|summary| format!("{}\n", as_json(summary)))
                .collect(),
            (OutputFormat::Text, true) => summaries
                .map(|summary| format!("{}\n", summary.id))
                .collect(),
            (OutputFormat::Text, false) => {
                let now = SystemTime::now();
                let rows: Vec<_> = summaries.map(|summary| row(summary, now)).collect();
                table(HEADINGS, &rows)
            }
        };
        say::data(text.as_bytes())?;
        Ok(Exit::Success)
    })
}

/// One sandbox as a document.
pub(super) fn as_json(summary: &SandboxSummary) -> Value {
    let created = summary.created.duration_since(UNIX_EPOCH);
    json!({
        "id": summary.id.as_str(),
        "runtime": summary.runtime,
        "state": state(summary.state),
        "image": summary.image,
        "created_seconds": created.map_or(0, |created| created.as_secs()),
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

fn row(summary: &SandboxSummary, now: SystemTime) -> [String; 5] {
    let lived = now.duration_since(summary.created).unwrap_or_default();
    [
        summary.id.to_string(),
        summary.runtime.to_owned(),
        state(summary.state).to_owned(),
        summary.image.as_deref().unwrap_or("-").to_owned(),
        format!("{} ago", age(lived)),
    ]
}
