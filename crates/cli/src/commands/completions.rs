//! `zareba completions`: a script that teaches a shell our arguments.
//!
//! Those of bash, zsh and fish ask the hidden command `complete` each time, which also knows names. Those of
//! other shells list the arguments.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{
    arguments::{Arguments, CompletionsArguments},
    exit::Exit,
    failure::Failure,
    say,
};

/// Prints the script.
pub(crate) fn perform(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let asking = match arguments.shell {
        Shell::Bash => include_str!("completions/zareba.bash"),
        Shell::Zsh => include_str!("completions/zareba.zsh"),
        Shell::Fish => include_str!("completions/zareba.fish"),
        shell => return listing(shell),
    };
    say::data(asking.as_bytes())?;
    Ok(Exit::Success)
}

fn listing(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "zareba", &mut script);
    say::data(&script)?;
    Ok(Exit::Success)
}
