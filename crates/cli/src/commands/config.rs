//! `zareba config show`: every setting, its value and who set it.

use zareba_config::UntrustedSettings;

use crate::{
    arguments::{ConfigArguments, ConfigCommand, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
    settings::{Sources, WithoutConfig},
};

/// Prints the settings that a command in this place would have.
pub(crate) fn perform(context: &Context, arguments: &ConfigArguments) -> Result<Exit, Failure> {
    match arguments.command {
        ConfigCommand::Show => show(context),
    }
}

fn show(context: &Context) -> Result<Exit, Failure> {
    let sources = Sources {
        untrusted: UntrustedSettings::LeaveOut,
        ..context.sources(WithoutConfig::Search)
    };
    let configuration = sources.load(Vec::new(), &context.notices)?;
    let rows = configuration.table();
    match context.globals.output {
        OutputFormat::Json => {
            let text = serde_json::to_string_pretty(&rows)
                .or_fail(Exit::Failure, "cannot write the settings as JSON")?;
            say::line(text)?;
        }
        OutputFormat::Text => {
            let settings = rows
                .iter()
                .map(|row| format!("{} = {}", row.key, row.value));
            let width = settings
                .clone()
                .map(|setting| setting.chars().count())
                .max();
            // A long value must not push the sources of all others out of sight.
            let width = width.unwrap_or(0).min(56);
            let lines = settings
                .zip(&rows)
                .map(|(setting, row)| format!("{setting:width$}  # {}\n", row.origin));
            say::data(lines.collect::<String>().as_bytes())?;
        }
    }
    for file in &configuration.files {
        let trust = match file.is_trusted {
            true => "",
            false => ", which you have not trusted",
        };
        say::note(format_args!("read `{}`{trust}", file.path.display()));
    }
    Ok(Exit::Success)
}
