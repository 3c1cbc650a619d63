//! A shell without a terminal: each line is a command, one after the other in one shell.

use zareba_config::Configuration;
use zareba_protocol::{Action, ActionEvent, CommandMetadata, ObservationKind, RunCommand};

use crate::{
    arguments::OutputFormat,
    commands::Context,
    exit::Exit,
    failure::Failure,
    lines::{Lines, Source},
    sandbox, say, settings,
};

/// Runs every line, and ends with what the last one ended with, as a shell does.
pub(super) fn perform(
    context: &Context,
    configuration: &Configuration,
    format: OutputFormat,
) -> Result<Exit, Failure> {
    let mut lines = Lines::read(Source::Stdin)?;
    let limit = settings::command_limit(None, configuration);
    sandbox::within(context, configuration, async |sandbox| {
        let mut exit = Exit::Success;
        while let Some(line) = lines.next().await? {
            if line.text.trim().is_empty() {
                continue;
            }
            let command = RunCommand {
                blocking: true,
                ..RunCommand::new(line.text)
            };
            let event = ActionEvent::from(Action::Run(command)).with_timeout(limit.as_secs_f64());
            let answer = sandbox.run_action(event).await;
            let event = answer.map_err(|error| sandbox::failure(&error))?;
            let observation = &event.observation;
            match format {
                OutputFormat::Json => say::line(event.to_json())?,
                OutputFormat::Text => say::text(&observation.content)?,
            }
            let ObservationKind::Run(output) = &observation.kind else {
                exit = Exit::Failure;
                continue;
            };
            exit = Exit::of_command(output.metadata.exit_code);
            let is_over = output.metadata.shell_restarted
                || output.metadata.exit_code == CommandMetadata::NO_EXIT_CODE;
            if is_over {
                break;
            }
        }
        Ok(exit)
    })
}
