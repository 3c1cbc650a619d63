//! `zareba keep`: holds a detached program, whose end would otherwise be that of the command that
//! started it, and records what it writes.

use std::io;

use zareba_wire::program::{ProgramConnection, ProgramEvent};

use super::exec;
use crate::{
    arguments::KeepArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    handed_over::ReadySignal,
    output_record::OutputRecord,
    sandbox::Fleet,
    signals::Signals,
    terminal_session::{self, Attachment},
};

/// Starts the program, says that it runs, and stays until it ends.
pub(crate) fn perform(context: &Context, arguments: &KeepArguments) -> Result<Exit, Failure> {
    rustix::process::setsid()
        .map_err(io::Error::from)
        .or_fail(Exit::Start, "cannot leave the terminal")?;
    let ready = ReadySignal::take(1)?;
    let request = exec::request(context, &arguments.program, Attachment::OutputOnly)?;
    Fleet::visit(context, async |fleet| {
        let mut signals = Signals::watch()?;
        let member = fleet.find(&arguments.program.id).await?;
        let sandbox = member.attach().await?;
        let record = OutputRecord::open(member.directory());
        let record = record.or_fail(Exit::Failure, "cannot record the output of the program")?;
        let started = sandbox.start_program(request).await;
        let program = started.map_err(|error| terminal_session::not_started(&error))?;
        ready.send();
        let exit = tokio::select! {
            exit = record_all(program, record) => exit?,
            signal = signals.next() => Exit::Command(128 + signal),
        };
        if arguments.rm {
            member.destroy().await?;
        }
        Ok(exit)
    })
}

async fn record_all(program: ProgramConnection, mut record: OutputRecord) -> Result<Exit, Failure> {
    // A detached program has no client that could type.
    let (_input, mut events) = program.split();
    loop {
        let bytes = match events.next().await {
            Some(ProgramEvent::Stdout(bytes) | ProgramEvent::Stderr(bytes)) => bytes,
            Some(ProgramEvent::Exit(exit)) => return Ok(Exit::of_command(exit.shell_status())),
            Some(ProgramEvent::Error(message)) => return Err(Failure::new(Exit::Lost, message)),
            // The sandbox has ended, and the program with it.
            None => return Ok(Exit::Lost),
        };
        let written = record.write(&bytes);
        written.or_fail(Exit::Failure, "cannot record the output of the program")?;
    }
}
