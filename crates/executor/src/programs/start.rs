//! Finding a program and starting it, on a terminal or on pipes.

use std::{
    error::Error as _,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use zareba_terminal::{Child, PipedInput, Pty, Size, Spawn, SpawnError};
use zareba_wire::program::{
    ProgramLine, ProgramRequest, ProgramStdin, StartFailure, StartProgramError, TerminalSize,
};

use super::{ProgramSpec, input::Input, output::Output, task::Streams};
use crate::{oom, shell};

/// Starts the program as a shell would be: in a session of its own, as the same user, with the
/// same environment and nothing of ours.
pub(super) fn start(
    spec: &ProgramSpec,
    request: &ProgramRequest,
) -> Result<(Child, Streams), StartProgramError> {
    let environment = environment(spec, request);
    let directory = match &request.directory {
        Some(directory) => spec.directory.join(directory),
        None => spec.directory.clone(),
    };
    let found = Found::look_for(&request.program, spec, &environment, &directory)?;
    let mut spawn = Spawn::new(&found.program, &directory);
    spawn.arg0 = found.arg0;
    spawn.arguments = found.arguments;
    spawn.environment = environment;
    spawn.credentials.clone_from(&spec.credentials);
    let (child, streams) = match request.terminal {
        Some(size) => on_terminal(spawn, size, request.stdin)?,
        None => on_pipes(spawn, request.stdin)?,
    };
    oom::goes_before_us(&child);
    Ok((child, streams))
}

/// The size that the wire speaks of, as a terminal has it.
pub(super) fn size_of(size: TerminalSize) -> Size {
    Size {
        columns: size.columns,
        rows: size.rows,
    }
}

fn on_terminal(
    spawn: Spawn,
    size: TerminalSize,
    stdin: ProgramStdin,
) -> Result<(Child, Streams), StartProgramError> {
    let pty = Pty::open(size_of(size)).map_err(|error| {
        let message = format!("cannot open a terminal for the program: {error}");
        StartProgramError::new(StartFailure::Internal, message)
    })?;
    let directory = spawn.directory.clone();
    let child = spawn
        .on(&pty)
        .map_err(|error| explain(&error, &directory))?;
    let output = Output::terminal(pty);
    let input = match (stdin, &output) {
        (ProgramStdin::Open, Output::Terminal(pty)) => Input::terminal(pty),
        _ => Input::nowhere(),
    };
    Ok((child, Streams { input, output }))
}

fn on_pipes(spawn: Spawn, stdin: ProgramStdin) -> Result<(Child, Streams), StartProgramError> {
    let piped = match stdin {
        ProgramStdin::Closed => PipedInput::Empty,
        ProgramStdin::Open => PipedInput::Open,
    };
    let directory = spawn.directory.clone();
    let (child, pipes) = spawn
        .on_pipes(piped)
        .map_err(|error| explain(&error, &directory))?;
    let streams = Streams {
        input: pipes.stdin.map_or_else(Input::nowhere, Input::pipe),
        output: Output::pipes(pipes.stdout, pipes.stderr),
    };
    Ok((child, streams))
}

/// What the request adds wins.
fn environment(spec: &ProgramSpec, request: &ProgramRequest) -> Vec<(OsString, OsString)> {
    let mut variables = spec.environment.clone();
    spec.variables.apply_to(&mut variables);
    for (name, value) in &request.environment {
        variables.retain(|(other, _)| other != name.as_str());
        variables.push((name.into(), value.into()));
    }
    variables
}

/// A program that was found, and its words.
struct Found {
    program: PathBuf,
    arg0: OsString,
    arguments: Vec<OsString>,
}

impl Found {
    fn look_for(
        line: &ProgramLine,
        spec: &ProgramSpec,
        environment: &[(OsString, OsString)],
        directory: &Path,
    ) -> Result<Self, StartProgramError> {
        let search_path = shell::search_path(environment);
        match line {
            ProgramLine::Shell(text) => {
                let program = shell::find_shell(spec.shell.as_deref(), &search_path);
                let program = program.ok_or_else(|| not_found("a shell", &search_path))?;
                Ok(Self {
                    arg0: program.clone().into(),
                    program,
                    arguments: vec!["-c".into(), text.into()],
                })
            }
            ProgramLine::Argv(words) => {
                let mut words = words.iter();
                let name = words.next().map_or("", String::as_str);
                let program = if name.contains('/') {
                    Some(directory.join(name))
                } else {
                    shell::find_program(name, &search_path)
                };
                Ok(Self {
                    program: program
                        .ok_or_else(|| not_found(&format!("`{name}`"), &search_path))?,
                    arg0: name.into(),
                    arguments: words.map(OsString::from).collect(),
                })
            }
        }
    }
}

fn not_found(what: &str, search_path: &str) -> StartProgramError {
    let message = format!("cannot find {what} in the search path `{search_path}`");
    StartProgramError::new(StartFailure::NotFound, message)
}

/// What kept a program from starting. The system gives one errno for the program, for what it
/// is interpreted by and for the directory; a second look tells them apart, for words only.
fn explain(error: &SpawnError, directory: &Path) -> StartProgramError {
    let (program, source) = match error {
        SpawnError::Start { program, source } => (program, source),
        SpawnError::Terminal { source, .. } | SpawnError::Pipes { source, .. } => {
            let message = format!("{error}: {source}");
            return StartProgramError::new(StartFailure::Internal, message);
        }
    };
    let shown = (program.display(), directory.display());
    let errno = Errno::from_io_error(source);
    let (reason, message) = match errno {
        Some(Errno::TOOBIG) => (
            StartFailure::Invalid,
            format!(
                "cannot start `{}`: its words and variables are too long for the system; write them to a file",
                shown.0
            ),
        ),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if !may_enter(directory) => (
            StartFailure::Directory,
            format!(
                "cannot start `{}` in `{}`: there is no such directory, or it may not be entered",
                shown.0, shown.1
            ),
        ),
        Some(Errno::NOENT | Errno::NOTDIR) if !program.exists() => {
            let reason = match fs::read_link(program) {
                Ok(target) => format!("it is a link to `{}`, which is not there", target.display()),
                Err(_) => "there is no such file".to_owned(),
            };
            let message = format!("cannot start `{}`: {reason}", shown.0);
            (StartFailure::NotFound, message)
        }
        Some(Errno::NOENT) => (
            StartFailure::NotExecutable,
            format!(
                "cannot start `{}`: what should interpret it is missing",
                shown.0
            ),
        ),
        Some(Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::NOTDIR) => (
            StartFailure::NotExecutable,
            format!("cannot start `{}`: it is not executable", shown.0),
        ),
        _ => (
            StartFailure::Internal,
            format!("cannot start `{}`: {}", shown.0, cause(source)),
        ),
    };
    StartProgramError::new(reason, message)
}

fn may_enter(directory: &Path) -> bool {
    rustix::fs::access(directory, rustix::fs::Access::EXEC_OK).is_ok() && directory.is_dir()
}

fn cause(error: &io::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
