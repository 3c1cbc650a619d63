//! `zareba doctor`: what this machine can do, and how to get the rest.

mod check;
mod docker;
mod kernel;
mod machine;
mod trial;

use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::runtime;

use self::check::{Check, Finding, Need};
use crate::{
    arguments::OutputFormat,
    commands::{Context, VERSION},
    exit::Exit,
    failure::{Failure, OrFail as _},
    play::Style,
    say,
};

/// Looks at the machine and says what it found.
pub(crate) fn perform(context: &Context) -> Result<Exit, Failure> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Failure, "cannot start")?;
    let configuration = context.configuration(Vec::new())?;
    let checks = runtime.block_on(machine::examine(context, &configuration.settings));
    let lacks_something = checks.iter().any(Check::is_blocking);
    let kind = configuration.settings.runtime.kind;
    let obstacles: Vec<&Check> = checks.iter().filter(|it| it.hinders(kind)).collect();
    match context.globals.output {
        OutputFormat::Json => say::line(format_args!("{:#}", as_json(&checks)))?,
        OutputFormat::Text => {
            let style = Style::for_stdout(&context.environment);
            say::data(as_text(&checks, style).as_bytes())?;
        }
    }
    if lacks_something {
        say::note("something is missing that is needed now");
        return Ok(Exit::Negative);
    }
    if !obstacles.is_empty() {
        let names: Vec<String> = obstacles
            .iter()
            .map(|it| format!("`{}`", it.name))
            .collect();
        say::note(format_args!(
            "no sandbox of the runtime {kind} can start here: {} above says why and what to do",
            names.join(" and ")
        ));
        return Ok(Exit::Negative);
    }
    say::note("everything that is needed now is here");
    Ok(Exit::Success)
}

fn as_text(checks: &[Check], style: Style) -> String {
    let mut text = String::new();
    for need in [
        Need::Now,
        Need::Useful,
        Need::Sandbox,
        Need::Docker,
        Need::Later,
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", style.strong(need.title()));
        for check in checks.iter().filter(|check| check.need == need) {
            let (word, what) = check.finding.in_words();
            let padded = format!("{word:<8}");
            let word = match check.finding {
                Finding::Present(_) => style.good(&padded),
                Finding::Partly(_) | Finding::Unknown(_) => style.warn(&padded),
                Finding::Missing(_) => style.bad(&padded),
            };
            let _ = writeln!(text, "  {word} {:<16} {what}", check.name);
        }
        text.push('\n');
    }
    text
}

fn as_json(checks: &[Check]) -> Value {
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            let (status, detail) = check.finding.in_words();
            json!({
                "name": check.name,
                "needed": check.need.word(),
                "status": status,
                "detail": detail,
            })
        })
        .collect();
    json!({ "version": VERSION, "checks": checks })
}
