//! `zareba supervise`: one sandbox, from its making to its end.
//!
//! The process has a single thread, as the launcher demands, and stays small: there is one of
//! it for every sandbox.

use std::io;

use zareba_confine::Network;
use zareba_runtime_native::{SuperviseError, Supervision, Usage, WorkspaceMode, supervise};

use crate::{
    arguments::{ModeArgument, NetworkArgument, SuperviseArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Keeps a sandbox until it ends or nobody wants it any more.
pub(super) fn perform(context: &Context, arguments: SuperviseArguments) -> Result<Exit, Failure> {
    let key = context
        .environment
        .get("SESSION_API_KEY")
        .unwrap_or_default()
        .to_owned();
    let environment = context
        .environment
        .iter()
        .filter(|(name, _)| *name != "SESSION_API_KEY");
    let environment = environment
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    zareba_config::wipe_keys().or_fail(Exit::Start, "cannot hide the executor's key")?;
    let lifeline = if arguments.lifeline {
        let standard = rustix::stdio::stdin();
        Some(rustix::io::fcntl_dupfd_cloexec(standard, 3).map_err(io::Error::from))
    } else {
        None
    };
    // What is inside must not hold the lifeline: it could keep it from ever reaching its end.
    let nothing = std::fs::File::open("/dev/null").or_fail(Exit::Start, "cannot open /dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)
        .map_err(io::Error::from)
        .or_fail(Exit::Start, "cannot let go of standard input")?;
    let supervision = Supervision {
        id: arguments.id,
        directory: arguments.directory,
        socket: arguments.unix,
        key,
        workspace: arguments.workspace,
        mode: match arguments.workspace_mode {
            ModeArgument::CopyOnWrite => WorkspaceMode::CopyOnWrite,
            ModeArgument::ReadWrite => WorkspaceMode::ReadWrite,
            ModeArgument::ReadOnly => WorkspaceMode::ReadOnly,
        },
        network: match arguments.network {
            NetworkArgument::None => Network::None,
            NetworkArgument::Host => Network::Host,
        },
        limits: Usage {
            memory_bytes: arguments.memory,
            pids: arguments.pids,
            cpu_millis: arguments.cpu_millis,
        },
        environment,
        arguments: arguments.executor,
        lifeline: lifeline
            .transpose()
            .or_fail(Exit::Start, "cannot hold the lifeline")?,
    };
    supervise(supervision)
        .map(|status| Exit::Command(u8::try_from(status).unwrap_or(u8::MAX)))
        .map_err(|error| refused(&error))
}

/// The step that failed knows what a person can do about it.
fn refused(error: &SuperviseError) -> Failure {
    let failure = Failure::of(Exit::Start, error);
    match error {
        SuperviseError::Launch(launch) => failure.hint(launch.step.remedy()),
        SuperviseError::Prepare { .. } | SuperviseError::Limit(_) => failure,
    }
}
