//! One file per command, and what all of them start with.

mod action;
mod complete;
mod completions;
mod config;
mod cp;
mod create;
mod dial;
mod diff;
mod doctor;
mod each;
mod egress;
mod exec;
mod executor;
mod gc;
mod image;
mod inspect;
mod keep;
mod key;
mod log;
mod logs;
mod mcp;
mod pause;
mod port;
mod ps;
mod replay;
mod rm;
mod run;
mod serve;
mod shell;
mod spawner;
mod stop;
mod supervise;
mod tools;
mod trust;
mod update;

pub(crate) use serve::server_client;

use std::ffi::OsString;

use zareba_config::{Configuration, Environment, Override, UntrustedSettings};
use zareba_session::Surface;

use crate::{
    arguments::{
        self, Arguments, Command, DoctorArguments, GcArguments, GlobalArguments, SpawnerArguments,
    },
    exit::Exit,
    failure::Failure,
    logging,
    play::Style,
    say,
    settings::{Notices, Sources, WithoutConfig},
};

/// The version with the commit it was built from.
pub(crate) const VERSION: &str = env!("PROGRAM_VERSION");

/// What every command has to work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) globals: GlobalArguments,
    pub(crate) environment: Environment,
    pub(crate) notices: Notices,
    /// Through what its sandboxes are used.
    pub(crate) surface: Surface,
}

impl Context {
    /// The configuration of a command that people type, with its flags.
    pub(crate) fn configuration(&self, flags: Vec<Override>) -> Result<Configuration, Failure> {
        self.sources(WithoutConfig::Search)
            .load(flags, &self.notices)
    }

    /// Where settings come from. The file of a project says no more than it may.
    pub(crate) fn sources(&self, without_config: WithoutConfig) -> Sources<'_> {
        Sources {
            globals: &self.globals,
            environment: &self.environment,
            without_config,
            untrusted: UntrustedSettings::Refuse,
        }
    }

    /// The server that sandboxes are to be had from, if that is not this machine itself.
    pub(crate) fn server(&self) -> Option<&str> {
        let named = self.globals.server.as_deref();
        named
            .or_else(|| self.environment.get("ZAREBA_URL"))
            .filter(|url| !url.is_empty())
    }

    /// Refuses what can only be done on this machine when a server is named.
    pub(crate) fn require_local(&self, command: &str) -> Result<(), Failure> {
        let Some(url) = self.server() else {
            return Ok(());
        };
        let message =
            format!("`zareba {command}` works on this machine, not on the server `{url}`");
        Err(Failure::new(Exit::Usage, message).hint("leave out `--server`, and unset ZAREBA_URL"))
    }
}

/// Runs a command line, and says why when it could not. For the whole program, and for copies of its
/// process that go on as another command.
pub(crate) fn run(arguments: Vec<OsString>, environment: Environment) -> Exit {
    match arguments::parse(arguments) {
        Ok(arguments) => perform(arguments, environment),
        Err(exit) => exit,
    }
}

/// The same, with the number that the process ends with.
fn run_as_process(arguments: Vec<OsString>, environment: Vec<(OsString, OsString)>) -> i32 {
    let exit = run(arguments, Environment::from_pairs(environment));
    exit.number().into()
}

/// Does what was asked for, and says why when it could not.
fn perform(arguments: Arguments, environment: Environment) -> Exit {
    let Arguments { globals, command } = arguments;
    say::set_style(Style::for_stderr(&environment));
    // The server's log has traces beside it, which its settings speak of; and what a spawner's
    // copies log is said in their own variables.
    if !matches!(command, Command::Serve(_) | Command::Spawner(_)) {
        logging::start(&environment);
    }
    let context = Context {
        globals,
        environment,
        notices: Notices::default(),
        surface: match command {
            Command::Mcp(_) => Surface::Mcp,
            _ => Surface::Cli,
        },
    };
    let outcome = match command {
        Command::Run(arguments) => run::perform(&context, &arguments),
        Command::Shell(arguments) => shell::perform(&context, &arguments),
        Command::Action(arguments) => action::perform(&context, &arguments),
        Command::Replay(arguments) => replay::perform(&context, &arguments),
        Command::Create(arguments) => create::perform(&context, &arguments),
        Command::Ps(arguments) => ps::perform(&context, &arguments),
        Command::Exec(arguments) => exec::perform(&context, &arguments),
        Command::Keep(arguments) => keep::perform(&context, &arguments),
        Command::Inspect(arguments) => inspect::perform(&context, &arguments),
        Command::Diff(arguments) => diff::perform(&context, &arguments),
        Command::Cp(arguments) => cp::perform(&context, &arguments),
        Command::Port(arguments) => port::perform(&context, &arguments),
        Command::Logs(arguments) => logs::perform(&context, &arguments),
        Command::Update(arguments) => update::perform(&context, &arguments),
        Command::Pause(arguments) => pause::pause(&context, &arguments),
        Command::Resume(arguments) => pause::resume(&context, &arguments),
        Command::Stop(arguments) => stop::perform(&context, &arguments),
        Command::Rm(arguments) => rm::perform(&context, &arguments),
        Command::Gc(GcArguments {}) => gc::perform(&context),
        Command::Image(arguments) => image::perform(&context, &arguments),
        Command::Images => image::list_all(&context),
        Command::Tools(arguments) => tools::perform(&context, &arguments),
        Command::Mcp(arguments) => mcp::perform(&context, &arguments),
        Command::Serve(arguments) => serve::perform(&context, &arguments),
        Command::Key(arguments) => key::perform(&context, &arguments),
        Command::Log(arguments) => log::perform(&context, &arguments),
        Command::Executor(arguments) => executor::perform(&context, &arguments),
        Command::Config(arguments) => config::perform(&context, &arguments),
        Command::Trust(arguments) => trust::perform(&context, &arguments),
        Command::Doctor(DoctorArguments {}) => doctor::perform(&context),
        Command::Completions(arguments) => completions::perform(&arguments),
        Command::Complete(arguments) => complete::perform(&context, &arguments),
        Command::Version => say::line(format_args!("zareba {VERSION}")).map(|()| Exit::Success),
        Command::Supervise(arguments) => supervise::perform(&context, arguments),
        Command::Spawner(SpawnerArguments { .. }) => spawner::perform(),
        Command::Egress(arguments) => egress::perform(&arguments),
        Command::Dial(arguments) => dial::perform(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        say::failure(&failure);
        failure.exit()
    })
}
