//! `zareba run`: one command in a fresh sandbox.

use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, ObservationEvent, ObservationKind, RunCommand,
};

use crate::{
    arguments::{OutputFormat, RunArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    play, quote, sandbox, say,
    settings::{self, WithoutConfig},
};

/// Runs the command and ends with its exit code.
pub(crate) fn perform(context: &Context, arguments: &RunArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = settings::load(
        &context.globals,
        &context.environment,
        WithoutConfig::Search,
        flags,
    )?;
    let command = match arguments.command.as_slice() {
        [text] => text.clone(),
        words => quote::join(words),
    };
    let limit = settings::command_limit(arguments.timeout, &configuration);
    let action = RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    };
    let event = ActionEvent::from(Action::Run(action)).with_timeout(limit.as_secs_f64());
    sandbox::within(context, &configuration, async |sandbox| {
        let started = Instant::now();
        let answer = sandbox.run_action(event).await;
        let observation = answer.map_err(|error| sandbox::failure(&error))?;
        let outcome = Outcome {
            observation,
            took: started.elapsed(),
            runtime: sandbox.runtime(),
        };
        outcome.report(context.globals.output)
    })
}

struct Outcome {
    observation: ObservationEvent,
    took: Duration,
    runtime: &'static str,
}

impl Outcome {
    fn report(&self, format: OutputFormat) -> Result<Exit, Failure> {
        let observation = &self.observation.observation;
        let ObservationKind::Run(output) = &observation.kind else {
            return Err(Failure::new(Exit::Failure, observation.content.as_str()));
        };
        match format {
            OutputFormat::Json => say::line(self.observation.to_json())?,
            OutputFormat::Text => show(&observation.content, &output.metadata)?,
        }
        let exit_code = output.metadata.exit_code;
        let exit = Exit::of_command(exit_code);
        let end = match exit {
            Exit::Timeout => "timed out".to_owned(),
            _ => format!("exit code {exit_code}"),
        };
        let took = play::duration(self.took);
        say::note(format_args!(
            "{end} after {took} in the runtime `{}`",
            self.runtime
        ));
        Ok(exit)
    }
}

/// The whole output where there is a file with it, otherwise what the observation holds.
fn show(content: &str, metadata: &CommandMetadata) -> Result<(), Failure> {
    let whole = metadata
        .output_file
        .as_deref()
        .and_then(|path| File::open(path).ok());
    if let Some(mut file) = whole {
        let mut stdout = io::stdout().lock();
        return match io::copy(&mut file, &mut stdout) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::of(Exit::Failure, &error).while_doing("cannot pass on the output"))
            }
            _ => Ok(()),
        };
    }
    say::text(content)
}
