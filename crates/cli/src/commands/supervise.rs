//! `zareba supervise`: one sandbox, from its making to its end.
//!
//! The process has a single thread, as the launcher demands, and stays small: there is one of
//! it for every sandbox.

use std::io;

use zareba_runtime::Strictness;
use zareba_runtime_native::{
    DiskLimit, Reachable, SuperviseError, Supervision, SystemMode, Usage, UserHome, WorkspaceMode,
    supervise,
};

use crate::{
    arguments::{ModeArgument, NetworkArgument, SuperviseArguments, SystemArgument},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Keeps a sandbox until it ends or nobody wants it any more.
pub(super) fn perform(context: &Context, arguments: SuperviseArguments) -> Result<Exit, Failure> {
    zareba_confine::close_inherited().or_fail(Exit::Start, "cannot close what was left open")?;
    std::env::set_current_dir("/").or_fail(Exit::Start, "cannot leave the current directory")?;
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
        image: arguments.image_store.zip(arguments.image),
        workspace: arguments.workspace,
        mode: match arguments.workspace_mode {
            ModeArgument::CopyOnWrite => WorkspaceMode::CopyOnWrite,
            ModeArgument::ReadWrite => WorkspaceMode::ReadWrite,
            ModeArgument::ReadOnly => WorkspaceMode::ReadOnly,
        },
        system: match arguments.system {
            SystemArgument::CopyOnWrite => SystemMode::CopyOnWrite,
            SystemArgument::ReadOnly => SystemMode::ReadOnly,
        },
        guarded: arguments.guarded,
        home: arguments.home_tools.map(|directory| UserHome {
            directory,
            search_path: arguments.home_path.unwrap_or_default(),
        }),
        reachable: reachable(arguments.network, arguments.egress.as_deref())?,
        limits: Usage {
            memory_bytes: arguments.memory,
            pids: arguments.pids,
            cpu_millis: arguments.cpu_millis,
            disk: DiskLimit {
                bytes: arguments.disk,
                inodes: arguments.inodes,
            },
        },
        strictness: strictness(arguments.best_effort),
        environment,
        arguments: arguments.executor,
        executor: super::run_as_process,
        lifeline: lifeline
            .transpose()
            .or_fail(Exit::Start, "cannot hold the lifeline")?,
    };
    supervise(supervision)
        .map(|status| Exit::Command(u8::try_from(status).unwrap_or(u8::MAX)))
        .map_err(|error| refused(&error))
}

fn strictness(is_best_effort: bool) -> Strictness {
    match is_best_effort {
        true => Strictness::BestEffort,
        false => Strictness::Strict,
    }
}

fn reachable(network: NetworkArgument, rules: Option<&str>) -> Result<Reachable, Failure> {
    match network {
        NetworkArgument::None => Ok(Reachable::Nothing),
        NetworkArgument::Host => Ok(Reachable::Everything),
        NetworkArgument::Filtered => serde_json::from_str(rules.unwrap_or("{}"))
            .map(Reachable::Listed)
            .map_err(|error| Failure::of(Exit::Usage, &error).while_doing("cannot read the rules")),
    }
}

/// The step that failed knows what a person can do about it.
fn refused(error: &SuperviseError) -> Failure {
    let failure = Failure::of(Exit::Start, error);
    match error {
        SuperviseError::Launch(launch) => failure.hint(launch.remedy()),
        SuperviseError::Limit(_) => failure.hint(
            "`--best-effort` goes on without the control groups, and says which limits nothing holds then",
        ),
        SuperviseError::Prepare { .. }
        | SuperviseError::Image(_)
        | SuperviseError::Weaker(_) => failure,
    }
}
