//! `zareba run`: one command in a fresh sandbox.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, Instant},
};

use zareba_protocol::{Action, ActionEvent, ObservationEvent, ObservationKind, RunCommand};
use zareba_runtime::Sandbox;

use crate::{
    arguments::{OutputFormat, RunArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    play, quote, sandbox, say, settings,
};

/// Runs the command and ends with its exit code.
pub(crate) fn perform(context: &Context, arguments: &RunArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
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
        match context.globals.output {
            OutputFormat::Json => say::line(outcome.observation.to_json())?,
            OutputFormat::Text => show(&outcome.observation, &*sandbox).await?,
        }
        outcome.end()
    })
}

struct Outcome {
    observation: ObservationEvent,
    took: Duration,
    runtime: &'static str,
}

impl Outcome {
    /// Says how it ended.
    fn end(&self) -> Result<Exit, Failure> {
        let observation = &self.observation.observation;
        let ObservationKind::Run(output) = &observation.kind else {
            return Err(Failure::new(Exit::Failure, observation.content.as_str()));
        };
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
async fn show(event: &ObservationEvent, sandbox: &dyn Sandbox) -> Result<(), Failure> {
    let observation = &event.observation;
    let ObservationKind::Run(output) = &observation.kind else {
        return Ok(());
    };
    let Some(path) = output.metadata.output_file.as_deref() else {
        return say::text(&observation.content);
    };
    match fetch(sandbox, Path::new(path)).await {
        Ok(file) => pass_on(file),
        Err(failure) => {
            say::text(&observation.content)?;
            say::warning("the output is shortened, because the file with all of it cannot be had");
            say::failure(&failure);
            Ok(())
        }
    }
}

/// A copy of a file inside. The path is one of the sandbox's, so it is never opened here.
async fn fetch(sandbox: &dyn Sandbox, path: &Path) -> Result<File, Failure> {
    let deed = "cannot make a place for the output";
    let directory = tempfile::tempdir().or_fail(Exit::Failure, deed)?;
    let copied = sandbox.copy_from(path, directory.path()).await;
    copied.map_err(|error| sandbox::failure(&error))?;
    let entries = fs::read_dir(directory.path()).or_fail(Exit::Failure, deed)?;
    let mut files = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let file = files.next().map(|entry| File::open(entry.path()));
    let missing = || Failure::new(Exit::Failure, "the sandbox did not send the output");
    file.ok_or_else(missing)?.or_fail(Exit::Failure, deed)
}

fn pass_on(mut file: File) -> Result<(), Failure> {
    match io::copy(&mut file, &mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::of(Exit::Failure, &error).while_doing("cannot pass on the output"))
        }
        _ => Ok(()),
    }
}
