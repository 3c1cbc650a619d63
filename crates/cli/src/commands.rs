//! One file per command, and what all of them start with.

mod action;
mod completions;
mod config;
mod doctor;
mod executor;
mod run;
mod shell;
mod supervise;

use zareba_config::Environment;

use crate::{
    arguments::{Arguments, Command, DoctorArguments, GlobalArguments},
    exit::Exit,
    logging, say,
};

/// The version with the commit it was built from.
pub(crate) const VERSION: &str = env!("PROGRAM_VERSION");

/// What every command has to work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) globals: GlobalArguments,
    pub(crate) environment: Environment,
}

/// Does what was asked for, and says why when it could not.
pub(crate) fn perform(arguments: Arguments, environment: Environment) -> Exit {
    logging::start(&environment);
    let Arguments { globals, command } = arguments;
    let context = Context {
        globals,
        environment,
    };
    let outcome = match command {
        Command::Run(arguments) => run::perform(&context, &arguments),
        Command::Shell(arguments) => shell::perform(&context, arguments),
        Command::Action(arguments) => action::perform(&context, &arguments),
        Command::Executor(arguments) => executor::perform(&context, &arguments),
        Command::Config(arguments) => config::perform(&context, &arguments),
        Command::Doctor(DoctorArguments {}) => doctor::perform(&context),
        Command::Completions(arguments) => completions::perform(&arguments),
        Command::Supervise(arguments) => supervise::perform(&context, arguments),
    };
    outcome.unwrap_or_else(|failure| {
        say::failure(&failure);
        failure.exit()
    })
}
