//! A shell at a terminal, inside a sandbox.

use zareba_config::Configuration;
use zareba_runtime::{RuntimeError, Sandbox};
use zareba_wire::program::{
    ProgramConnection, ProgramLine, ProgramRequest, ProgramStdin, StartFailure,
};

use crate::{
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::{self, Wanted},
    say,
    terminal_session::{self, Attachment},
};

/// Makes a sandbox and gives the terminal to a login shell in it.
pub(super) fn perform(context: &Context, configuration: &Configuration) -> Result<Exit, Failure> {
    sandbox::within_named(
        context,
        configuration,
        Wanted::default(),
        async |sandbox, signals| {
            say::note(format_args!(
                "a shell in a sandbox of the runtime `{}`; `exit` leaves it",
                sandbox.runtime()
            ));
            let started = tokio::select! {
                started = start(context, configuration, &*sandbox) => started,
                signal = signals.next() => return Ok(Exit::Command(128 + signal)),
            };
            let shell = started.map_err(|error| terminal_session::not_started(&error))?;
            terminal_session::attach(shell, Attachment::Terminal, signals).await
        },
    )
}

/// The shell that is set, else bash, else sh; whichever there is inside.
async fn start(
    context: &Context,
    configuration: &Configuration,
    sandbox: &dyn Sandbox,
) -> Result<ProgramConnection, RuntimeError> {
    let set = configuration.settings.shell.program.as_ref();
    if let Some(program) = set {
        let program = program.to_string_lossy().into_owned();
        return sandbox.start_program(request(context, vec![program])).await;
    }
    let bash = vec!["bash".to_owned(), "-l".to_owned()];
    match sandbox.start_program(request(context, bash)).await {
        Err(RuntimeError::Program(error)) if error.reason == StartFailure::NotFound => {
            let sh = vec!["sh".to_owned()];
            sandbox.start_program(request(context, sh)).await
        }
        result => result,
    }
}

/// As the sandbox's shells have it, but for the terminal, which is the user's.
fn request(context: &Context, words: Vec<String>) -> ProgramRequest {
    let kind = context.environment.get("TERM");
    ProgramRequest {
        environment: kind
            .map(|kind| ("TERM".to_owned(), kind.to_owned()))
            .into_iter()
            .collect(),
        terminal: terminal_session::size(),
        stdin: ProgramStdin::Open,
        ..ProgramRequest::new(ProgramLine::Argv(words))
    }
}
