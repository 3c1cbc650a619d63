//! `zareba shell`: a person's shell in a fresh sandbox of the runtime `cli`.
//!
//! `interactive` relays a terminal, `scripted` takes commands from a file or a pipe.

mod interactive;
mod raw_mode;
mod scripted;

use std::io::{self, IsTerminal as _};

use crate::{
    arguments::{OutputFormat, SandboxArguments, ShellArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    settings::{self, WithoutConfig},
};

/// Opens the shell and ends with what it ends with.
pub(crate) fn perform(context: &Context, arguments: ShellArguments) -> Result<Exit, Failure> {
    let sandbox = SandboxArguments {
        runtime: Some("cli".to_owned()),
        workspace: arguments.workspace,
        variables: arguments.variables,
    };
    let flags = sandbox.overrides()?;
    let configuration = settings::load(
        &context.globals,
        &context.environment,
        WithoutConfig::Search,
        flags,
    )?;
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match (at_terminal, context.globals.output) {
        (true, OutputFormat::Text) => interactive::perform(context, &configuration),
        (true, OutputFormat::Json) => {
            let message = "a shell at a terminal cannot be printed as JSON";
            Err(Failure::new(Exit::Usage, message)
                .hint("pipe commands into `zareba shell -o json`"))
        }
        (false, format) => scripted::perform(context, &configuration, format),
    }
}
