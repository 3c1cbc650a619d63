//! `zareba exec`: a program in an existing sandbox.

use zareba_runtime::Sandbox;
use zareba_wire::program::{ProgramLine, ProgramRequest, ProgramStdin};

use crate::{
    arguments::{ExecArguments, OutputFormat, ProgramArguments, split_variable},
    commands::Context,
    detached::{self, AtItsEnd},
    exit::Exit,
    failure::Failure,
    home_hint,
    sandbox::Fleet,
    say,
    signals::Signals,
    terminal_session::{self, Attachment},
};

/// Runs the program and ends with its exit code.
pub(crate) fn perform(context: &Context, arguments: &ExecArguments) -> Result<Exit, Failure> {
    if context.globals.output == OutputFormat::Json {
        let message = "the streams of a program cannot be printed as JSON";
        return Err(Failure::new(Exit::Usage, message));
    }
    if let Some(user) = &arguments.user {
        let message = format!("`exec` cannot run a program as the user `{user}`");
        return Err(Failure::new(Exit::Usage, message)
            .hint("leave out `-u`: a sandbox has one user, whom all of its programs run as"));
    }
    let program = &arguments.program;
    if arguments.detach {
        detached::require_local(context)?;
        detached::start(context, program, AtItsEnd::TheSandboxStays)?;
        return Ok(Exit::Success);
    }
    let attachment = arguments.attachment();
    let request = request(context, program, attachment)?;
    Fleet::visit(context, async |fleet| {
        let ended = run(fleet, program, request, attachment).await;
        let member = match ended {
            Ok(Exit::Success) => None,
            _ => fleet.find(&program.id).await.ok(),
        };
        home_hint::tell(ended, |exit| {
            let summary = &member.as_ref()?.summary;
            let made_of = (summary.runtime, summary.image.as_deref());
            home_hint::for_existing(context, made_of, &program.command, exit)
        })
    })
}

/// Runs the program to its end.
async fn run(
    fleet: &Fleet,
    program: &ProgramArguments,
    request: ProgramRequest,
    attachment: Attachment,
) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    let start = async {
        let sandbox = fleet.find(&program.id).await?.attach().await?;
        // What happened before is not about this program.
        let _ = sandbox.limits_met(0).await;
        let started = sandbox.start_program(request).await;
        let program = started.map_err(|error| terminal_session::not_started(&error))?;
        Ok((sandbox, program))
    };
    let (sandbox, program) = tokio::select! {
        started = start => started?,
        signal = signals.next() => return Ok(Exit::Command(128 + signal)),
    };
    let exit = terminal_session::attach(program, attachment, &mut signals).await?;
    tell_limits(&*sandbox, exit).await;
    Ok(exit)
}

/// Says which limits of the sandbox a program has met.
pub(super) async fn tell_limits(sandbox: &dyn Sandbox, exit: Exit) {
    for limit in sandbox.limits_met(exit.number().into()).await {
        say::warning(limit.message);
    }
}

/// The program as the executor is asked for it. Its terminal has the size of ours.
pub(super) fn request(
    context: &Context,
    arguments: &ProgramArguments,
    attachment: Attachment,
) -> Result<ProgramRequest, Failure> {
    let program = match arguments.command.as_slice() {
        [text] => ProgramLine::Shell(text.clone()),
        words => ProgramLine::Argv(words.to_vec()),
    };
    let has_terminal = attachment == Attachment::Terminal;
    let kind = context.environment.get("TERM");
    let kind = kind.filter(|_| has_terminal).map(|kind| ("TERM", kind));
    let given = arguments.variables.iter().map(|text| split_variable(text));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let environment = kind.into_iter().chain(given);
    Ok(ProgramRequest {
        directory: arguments.workdir.clone(),
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        terminal: terminal_session::size().filter(|_| has_terminal),
        stdin: match attachment {
            Attachment::OutputOnly => ProgramStdin::Closed,
            Attachment::Terminal | Attachment::Pipes => ProgramStdin::Open,
        },
        ..ProgramRequest::new(program)
    })
}
