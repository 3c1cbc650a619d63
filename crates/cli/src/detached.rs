//! Starting a program that goes on without us: `zareba keep` holds it.

use std::{
    ffi::OsString,
    io::{self, Read as _},
    process::{Child, Command, Stdio},
};

use crate::{
    arguments::ProgramArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// What becomes of the sandbox when the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtItsEnd {
    TheSandboxStays,
    TheSandboxEnds,
}

/// What a keeper may say of why it could not start the program.
const REASON_BYTES_MAX: u64 = 16 * 1024;

const DEED: &str = "cannot start the program in the background";

/// Refuses what has no sandbox of this machine to record beside.
pub(crate) fn require_local(context: &Context) -> Result<(), Failure> {
    let Some(url) = context.server() else {
        return Ok(());
    };
    let message = format!("`-d` works on this machine, not on the server `{url}`");
    Err(Failure::new(Exit::Usage, message)
        .hint("leave out `--server` and unset ZAREBA_URL, or use `start` of the Python SDK"))
}

/// Starts the program and returns once it runs. Blocks until then.
pub(crate) fn start(
    context: &Context,
    program: &ProgramArguments,
    at_its_end: AtItsEnd,
) -> Result<(), Failure> {
    let ourselves = std::env::current_exe().or_fail(Exit::Start, "cannot find our own program")?;
    let keeper = Command::new(ourselves)
        .args(arguments(context, program, at_its_end))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut keeper = keeper.or_fail(Exit::Start, DEED)?;
    if said(&mut keeper).or_fail(Exit::Start, DEED)? == "ready\n" {
        return Ok(());
    }
    Err(refusal(keeper).or_fail(Exit::Start, DEED)?)
}

/// The keeper says by its standard output that the program runs, and nothing else.
fn said(keeper: &mut Child) -> io::Result<String> {
    let mut word = String::new();
    if let Some(mut ready) = keeper.stdout.take() {
        ready.read_to_string(&mut word)?;
    }
    Ok(word)
}

/// Why the program does not run, as the keeper has printed it.
fn refusal(mut keeper: Child) -> io::Result<Failure> {
    let mut words = String::new();
    if let Some(stderr) = keeper.stderr.take() {
        stderr.take(REASON_BYTES_MAX).read_to_string(&mut words)?;
    }
    let code = keeper
        .wait()?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    let exit = code.map_or(Exit::Failure, Exit::Command);
    let without_reason = || Failure::new(exit, DEED);
    Ok(Failure::printed(exit, &words).unwrap_or_else(without_reason))
}

fn arguments(context: &Context, program: &ProgramArguments, at_its_end: AtItsEnd) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["keep".into()];
    if let Some(config) = &context.globals.config {
        words.extend(["--config".into(), config.into()]);
    }
    for setting in &context.globals.set {
        words.extend(["--set".into(), setting.into()]);
    }
    if at_its_end == AtItsEnd::TheSandboxEnds {
        words.push("--rm".into());
    }
    if let Some(directory) = &program.workdir {
        words.extend(["--workdir".into(), directory.into()]);
    }
    for variable in &program.variables {
        words.extend(["--env".into(), variable.into()]);
    }
    words.extend([program.id.clone().into(), "--".into()]);
    words.extend(program.command.iter().map(OsString::from));
    words
}
