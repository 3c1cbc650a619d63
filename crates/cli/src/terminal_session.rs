//! A person or a pipe at a program in a sandbox: what is typed goes in, what it writes comes
//! out, until it ends.
//!
//! A signal for us is passed on to the program. One that goes on regardless is left by the second
//! signal. Dropping the future gives the terminal back and ends the program.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};
use zareba_runtime::RuntimeError;
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramEvents, ProgramInput, ProgramSignal, StartFailure,
    TerminalSize,
};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox,
    signals::{self, Signals},
    user_terminal::{self, RawMode},
};

/// What shells show for a program that cannot be run, and for one that is not there.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What shells show for a program whose output nobody reads.
const NOBODY_READS: u8 = 128 + 13;

/// How long a program may take to end after SIGTERM or SIGHUP was passed on to it. SIGINT has no
/// such limit: many programs take it as the end of a line, not of themselves.
const GRACE: Duration = Duration::from_secs(10);

/// How much of our own streams the program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// All, and it has a terminal: keys go through as they are, and so does every new size.
    Terminal,
    /// All, and it has pipes.
    Pipes,
    /// Its output is shown.
    OutputOnly,
}

/// The size to start a program's terminal with: that of our own.
pub(crate) fn size() -> Option<TerminalSize> {
    let size = user_terminal::size();
    TerminalSize::new(size.rows, size.columns)
}

/// Connects our streams with the program's, and returns what it ended with.
pub(crate) async fn attach(
    connection: ProgramConnection,
    attachment: Attachment,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let takes_keys = attachment == Attachment::Terminal && io::stdin().is_terminal();
    let raw_mode = takes_keys
        .then(RawMode::enter)
        .transpose()
        .or_fail(Exit::Start, "cannot use this terminal")?;
    let (input, mut events) = connection.split();
    let outcome = tokio::select! {
        outcome = show(&mut events) => outcome,
        failure = pass_on(&input, attachment) => Err(failure),
        signal = forward(&input, signals) => Ok(Exit::Command(128 + signal)),
    };
    drop(raw_mode);
    outcome
}

/// Passes the first signal on. Returns when the program has to end without having taken it: after
/// a second signal, or when it was asked to end and does not.
async fn forward(input: &ProgramInput, signals: &mut Signals) -> u8 {
    let first = signals.next().await;
    let signal = match first {
        signals::INTERRUPT => ProgramSignal::Int,
        signals::HANG_UP => ProgramSignal::Hup,
        _ => ProgramSignal::Term,
    };
    // A program that is gone has an end, which comes by the other way.
    let _ = input.signal(signal).await;
    let grace = async {
        match signal {
            ProgramSignal::Int => std::future::pending().await,
            _ => tokio::time::sleep(GRACE).await,
        }
    };
    tokio::select! {
        second = signals.next() => second,
        () = grace => first,
    }
}

/// What it means for us that a program could not be started.
pub(crate) fn not_started(error: &RuntimeError) -> Failure {
    let exit = match error {
        RuntimeError::Program(error) => match error.reason {
            StartFailure::NotFound => Exit::Command(NOT_FOUND),
            StartFailure::NotExecutable => Exit::Command(NOT_EXECUTABLE),
            StartFailure::Directory | StartFailure::Invalid => Exit::Usage,
            _ => Exit::Failure,
        },
        _ => return sandbox::failure(error),
    };
    Failure::of(exit, error)
}

/// Writes what comes, until the end.
async fn show(events: &mut ProgramEvents) -> Result<Exit, Failure> {
    let lost =
        |message| Failure::new(Exit::Lost, message).while_doing("lost the program in the sandbox");
    loop {
        let written = match events.next().await {
            Some(ProgramEvent::Stdout(bytes)) => {
                off_thread(move || write(io::stdout().lock(), &bytes)).await
            }
            Some(ProgramEvent::Stderr(bytes)) => {
                off_thread(move || write(io::stderr().lock(), &bytes)).await
            }
            Some(ProgramEvent::Exit(exit)) => return Ok(Exit::of_command(exit.shell_status())),
            Some(ProgramEvent::Error(message)) => return Err(lost(message)),
            None => return Err(lost("it did not say how it ended".to_owned())),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Exit::Command(NOBODY_READS));
            }
            result => result.or_fail(Exit::Failure, "cannot write what the program wrote")?,
        }
    }
}

/// A reader of ours may take its time, and signals must be heard meanwhile.
async fn off_thread(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

fn write(mut stream: impl io::Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// Passes on what is typed and how large our terminal is; returns only when it cannot.
async fn pass_on(input: &ProgramInput, attachment: Attachment) -> Failure {
    let nothing = std::future::pending::<Failure>;
    match attachment {
        Attachment::OutputOnly => nothing().await,
        Attachment::Pipes => type_at(input).await,
        Attachment::Terminal => tokio::select! {
            failure = type_at(input) => failure,
            failure = resize(input) => failure,
        },
    }
}

async fn type_at(input: &ProgramInput) -> Failure {
    let mut keys = match user_terminal::keyboard() {
        Ok(keys) => keys,
        Err(failure) => return failure,
    };
    while let Some(typed) = keys.recv().await {
        // One that is gone has an end, which comes by the other way.
        if input.write_stdin(typed.into()).await.is_err() {
            break;
        }
    }
    let _ = input.close_stdin().await;
    std::future::pending().await
}

async fn resize(input: &ProgramInput) -> Failure {
    let watched = signal(SignalKind::window_change());
    let mut resized = match watched.or_fail(Exit::Start, "cannot wait for signals") {
        Ok(resized) => resized,
        Err(failure) => return failure,
    };
    while resized.recv().await.is_some() {
        if let Some(size) = size() {
            let _ = input.resize(size).await;
        }
    }
    std::future::pending().await
}
