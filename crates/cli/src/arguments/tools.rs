//! `zareba tools`.

mod serve;
mod use_tools;

use clap::{Args, Subcommand};

pub(crate) use serve::ServeToolsArguments;
pub(crate) use use_tools::{
    CallToolArguments, ListToolsArguments, SchemaFormat, ToolSchemaArguments, ToolsSource,
};

/// Tools: functions that agents call
#[derive(Args, Debug)]
pub(crate) struct ToolsArguments {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// What can be done with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    Ls(ListToolsArguments),
    Call(CallToolArguments),
    Schema(ToolSchemaArguments),
    Serve(ServeToolsArguments),
}
