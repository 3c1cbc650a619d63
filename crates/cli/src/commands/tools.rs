//! `zareba tools`: functions that agents call.

mod call;
mod list;
mod serve;
mod source;
mod token;
mod transport;

use crate::{
    arguments::{ToolsArguments, ToolsCommand},
    commands::Context,
    exit::Exit,
    failure::Failure,
};

pub(crate) use token::{ServerToken, Whereabouts};

/// Does what was asked for.
pub(crate) fn perform(context: &Context, arguments: &ToolsArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        ToolsCommand::Ls(arguments) => list::ls(context, arguments),
        ToolsCommand::Schema(arguments) => list::schema(context, arguments),
        ToolsCommand::Call(arguments) => call::perform(context, arguments),
        ToolsCommand::Serve(arguments) => serve::perform(context, arguments),
    }
}
