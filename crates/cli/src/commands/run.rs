//! `zareba run`: one command in a fresh sandbox.
//!
//! The command is a program with our streams. `-o json` runs it as an action instead, whose
//! observation is what is printed.

mod observed;

use std::time::{Duration, Instant};

use tokio::time::timeout;
use zareba_config::Configuration;
use zareba_runtime::{Sandbox, SandboxId};
use zareba_wire::program::ProgramRequest;

use super::{create, exec};
use crate::{
    arguments::{OutputFormat, ProgramArguments, RunArguments},
    commands::Context,
    detached::{self, AtItsEnd},
    exit::Exit,
    failure::Failure,
    home_hint, play,
    sandbox::{self, Wanted, within_named},
    say, settings,
    signals::Signals,
    terminal_session::{self, Attachment},
};

/// Runs the command and ends with its exit code.
pub(crate) fn perform(context: &Context, arguments: &RunArguments) -> Result<Exit, Failure> {
    refuse_volumes(arguments)?;
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    let name = arguments.name.as_deref().map(sandbox::new_name);
    let name = name.transpose()?;
    if arguments.detach {
        return detached(context, &configuration, arguments, name);
    }
    match context.globals.output {
        OutputFormat::Json => observed::perform(context, &configuration, arguments, name),
        OutputFormat::Text => attached(context, &configuration, arguments, name),
    }
}

/// With streams of ours, until the command ends.
fn attached(
    context: &Context,
    configuration: &Configuration,
    arguments: &RunArguments,
    name: Option<SandboxId>,
) -> Result<Exit, Failure> {
    let attachment = arguments.attachment();
    let program = program(arguments, "");
    let request = exec::request(context, &program, attachment)?;
    let limit = settings::command_limit(arguments.timeout, configuration);
    let wanted = Wanted {
        name,
        command: &arguments.command,
        life: arguments.life.clone(),
    };
    within_named(context, configuration, wanted, async |sandbox, signals| {
        let run = Attached {
            sandbox: &*sandbox,
            attachment,
            limit,
            is_quiet: arguments.quiet,
        };
        let ended = run.perform(request, signals).await;
        let of_home = |exit| home_hint::for_fresh(context, configuration, &arguments.command, exit);
        home_hint::tell(ended, of_home)
    })
}

struct Attached<'a> {
    sandbox: &'a dyn Sandbox,
    attachment: Attachment,
    limit: Duration,
    is_quiet: bool,
}

impl Attached<'_> {
    async fn perform(
        self,
        request: ProgramRequest,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let began = Instant::now();
        let started = tokio::select! {
            started = self.sandbox.start_program(request) => started,
            signal = signals.next() => return Ok(Exit::Command(128 + signal)),
        };
        let program = started.map_err(|error| terminal_session::not_started(&error))?;
        let attached = terminal_session::attach(program, self.attachment, signals);
        let Ok(outcome) = timeout(self.limit, attached).await else {
            exec::tell_limits(self.sandbox, Exit::Timeout).await;
            return Err(took_too_long(self.limit));
        };
        let exit = outcome?;
        exec::tell_limits(self.sandbox, exit).await;
        let end = format!("exit code {}", exit.number());
        tell_end(self.is_quiet, &end, began.elapsed(), self.sandbox);
        Ok(exit)
    }
}

/// The summary for a person. A redirected standard error holds only what the command wrote.
fn tell_end(is_quiet: bool, end: &str, took: Duration, sandbox: &dyn Sandbox) {
    if is_quiet || !say::to_a_person() {
        return;
    }
    let (took, runtime) = (play::duration(took), sandbox.runtime());
    say::note(format_args!(
        "{end} after {took} in the runtime `{runtime}`"
    ));
}

fn took_too_long(limit: Duration) -> Failure {
    let limit = play::duration(limit);
    let message = format!("the command took longer than {limit}, and was killed with its sandbox");
    Failure::new(Exit::Timeout, message)
}

/// In a persistent sandbox, until the user ends it, or with `--rm` until the command ends.
fn detached(
    context: &Context,
    configuration: &Configuration,
    arguments: &RunArguments,
    name: Option<SandboxId>,
) -> Result<Exit, Failure> {
    detached::require_local(context)?;
    let at_its_end = match arguments.rm {
        true => AtItsEnd::TheSandboxEnds,
        false => AtItsEnd::TheSandboxStays,
    };
    let wanted = Wanted {
        name,
        command: &arguments.command,
        life: arguments.life.clone(),
    };
    create::lasting(context, configuration, wanted, |id| {
        detached::start(context, &program(arguments, id), at_its_end)
    })
}

/// The command as a program of this sandbox.
fn program(arguments: &RunArguments, id: &str) -> ProgramArguments {
    ProgramArguments {
        workdir: arguments.workdir.clone(),
        // Its variables are the sandbox's.
        variables: Vec::new(),
        id: id.to_owned(),
        command: arguments.command.clone(),
    }
}

fn refuse_volumes(arguments: &RunArguments) -> Result<(), Failure> {
    let Some(volume) = arguments.volume.first() else {
        return Ok(());
    };
    let directory = volume.split(':').next().unwrap_or_default();
    let message = format!("`-v {volume}`: a sandbox has one directory of this machine");
    Err(Failure::new(Exit::Usage, message).hint(format!(
        "`--workspace {directory}` makes it the workspace; with `--workspace-mode read-write` \
         changes go to it"
    )))
}
