//! `zareba completions`: a script that teaches a shell our arguments.

use clap::CommandFactory as _;

use crate::{
    arguments::{Arguments, CompletionsArguments},
    exit::Exit,
    failure::Failure,
    say,
};

/// Prints the script.
pub(crate) fn perform(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "zareba",
        &mut script,
    );
    say::data(&script)?;
    Ok(Exit::Success)
}
