//! `zareba exec`: a program in a sandbox that is there.

use zareba_wire::program::{ProgramLine, ProgramRequest, ProgramStdin};

use crate::{
    arguments::{ExecArguments, OutputFormat, split_variable},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::Fleet,
    signals::Signals,
    terminal_session::{self, Attachment},
};

/// Runs the program and ends with its exit code.
pub(crate) fn perform(context: &Context, arguments: &ExecArguments) -> Result<Exit, Failure> {
    if context.globals.output == OutputFormat::Json {
        let message = "the streams of a program cannot be printed as JSON";
        return Err(Failure::new(Exit::Usage, message));
    }
    let request = request(context, arguments)?;
    let attachment = match (arguments.terminal, arguments.interactive) {
        (true, _) => Attachment::Terminal,
        (false, true) => Attachment::Pipes,
        (false, false) => Attachment::OutputOnly,
    };
    Fleet::visit(context, async |fleet| {
        let mut signals = Signals::watch()?;
        let run = async {
            let sandbox = fleet.find(&arguments.id).await?.attach().await?;
            let started = sandbox.start_program(request).await;
            let program = started.map_err(|error| terminal_session::not_started(&error))?;
            terminal_session::attach(program, attachment).await
        };
        tokio::select! {
            outcome = run => outcome,
            // The program ends with its connection.
            signal = signals.next() => Ok(Exit::Command(128 + signal)),
        }
    })
}

fn request(context: &Context, arguments: &ExecArguments) -> Result<ProgramRequest, Failure> {
    let program = match arguments.command.as_slice() {
        [text] => ProgramLine::Shell(text.clone()),
        words => ProgramLine::Argv(words.to_vec()),
    };
    let kind = context.environment.get("TERM");
    let kind = kind
        .filter(|_| arguments.terminal)
        .map(|kind| ("TERM", kind));
    let given = arguments.variables.iter().map(|text| split_variable(text));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let environment = kind.into_iter().chain(given);
    let takes_input = arguments.terminal || arguments.interactive;
    Ok(ProgramRequest {
        directory: arguments.workdir.clone(),
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        terminal: terminal_session::size().filter(|_| arguments.terminal),
        stdin: if takes_input {
            ProgramStdin::Open
        } else {
            ProgramStdin::Closed
        },
        ..ProgramRequest::new(program)
    })
}
