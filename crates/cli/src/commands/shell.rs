//! `zareba shell`: a person's shell in a fresh sandbox.
//!
//! At a terminal `sandboxed` relays one inside the sandbox, or `interactive` one of this machine
//! for the runtime `cli`; `scripted` takes commands from a file or a pipe.

mod interactive;
mod sandboxed;
mod scripted;

use std::io::{self, IsTerminal as _};

use zareba_config::RuntimeKind;

use crate::{
    arguments::{OutputFormat, ShellArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox,
};

/// Opens the shell and ends with what it ends with.
pub(crate) fn perform(context: &Context, arguments: &ShellArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match (at_terminal, context.globals.output) {
        (true, OutputFormat::Text) => match configuration.settings.runtime.kind {
            RuntimeKind::Cli if context.server().is_none() => {
                sandbox::asked_spec(context, &configuration)?;
                interactive::perform(context, &configuration)
            }
            _ => sandboxed::perform(context, &configuration),
        },
        (true, OutputFormat::Json) => {
            let message = "a shell at a terminal cannot be printed as JSON";
            Err(Failure::new(Exit::Usage, message)
                .hint("pipe commands into `zareba shell -o json`"))
        }
        (false, format) => scripted::perform(context, &configuration, format),
    }
}
