//! What can be typed: one type per command, with its help text.
//!
//! Nothing is decided here. Values that must hold together are checked by the command, where
//! the message can say what to do.

mod action;
mod alone;
mod create;
mod dial;
mod egress;
mod exec;
mod executor;
mod image;
mod life;
mod mcp;
mod members;
mod other;
mod replay;
mod run;
mod sandbox;
mod serve;
mod shell;
mod spawner;
mod supervise;
mod times;
mod tools;
mod trust;
mod update;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, error::ErrorKind};

pub(crate) use action::ActionArguments;
pub(crate) use create::CreateArguments;
pub(crate) use dial::DialArguments;
pub(crate) use egress::EgressArguments;
pub(crate) use exec::{ExecArguments, KeepArguments, ProgramArguments};
pub(crate) use executor::{DEFAULT_USERNAME, ExecutorArguments};
pub(crate) use image::{BuildArguments, BuilderName, ImageArguments, ImageCommand, PruneArguments};
pub(crate) use life::LifeArguments;
pub(crate) use mcp::McpArguments;
pub(crate) use members::{
    CpArguments, DiffArguments, GcArguments, InspectArguments, LogsArguments, PauseArguments,
    PortArguments, PsArguments, ResumeArguments, RmArguments, StopArguments,
};
pub(crate) use other::{
    CompleteArguments, CompletionsArguments, ConfigArguments, ConfigCommand, DoctorArguments,
};
pub(crate) use replay::ReplayArguments;
pub(crate) use run::RunArguments;
pub(crate) use sandbox::{HOME_TOOLS, MOUNT, SandboxArguments, USER, split_variable};
pub(crate) use serve::{
    CreateKeyArguments, ExportLogArguments, ImportLogArguments, KeyArguments, KeyCommand,
    LogArguments, LogCommand, RemoveKeyArguments, ScopeArgument, ServeArguments,
    VerifyLogArguments,
};
pub(crate) use shell::ShellArguments;
pub(crate) use spawner::SpawnerArguments;
pub(crate) use supervise::{ModeArgument, NetworkArgument, SuperviseArguments, SystemArgument};
pub(crate) use tools::{
    CallToolArguments, ListToolsArguments, SchemaFormat, ServeToolsArguments, ToolSchemaArguments,
    ToolsArguments, ToolsCommand, ToolsSource,
};
pub(crate) use trust::TrustArguments;
pub(crate) use update::UpdateArguments;

use crate::exit::Exit;

/// The heading of what every command takes.
const GLOBAL: &str = "Every command";

/// A place for agents to work in: actions in, observations out.
#[derive(Debug, Parser)]
#[command(
    name = "zareba",
    version = crate::commands::VERSION,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
pub(crate) struct GlobalArguments {
    /// Read this configuration file and no other
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// Set one setting, such as shell.timeout=30; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", help_heading = GLOBAL)]
    pub(crate) set: Vec<String>,
    /// Use the sandboxes of this server [env: ZAREBA_URL; its key: ZAREBA_API_KEY]
    #[arg(long, global = true, value_name = "URL", help_heading = GLOBAL)]
    pub(crate) server: Option<String>,
    /// How to print results
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "text", help_heading = GLOBAL)]
    pub(crate) output: OutputFormat,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    // Not documentation: clap would print a list of it in every help text.
    // For people.
    Text,
    // For programs.
    Json,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Shell(ShellArguments),
    Action(ActionArguments),
    Replay(ReplayArguments),
    Create(CreateArguments),
    Ps(PsArguments),
    Exec(ExecArguments),
    Keep(KeepArguments),
    Inspect(InspectArguments),
    Diff(DiffArguments),
    Cp(CpArguments),
    Port(PortArguments),
    Logs(LogsArguments),
    Update(UpdateArguments),
    Pause(PauseArguments),
    Resume(ResumeArguments),
    #[command(alias = "kill")]
    Stop(StopArguments),
    Rm(RmArguments),
    Gc(GcArguments),
    Image(ImageArguments),
    /// List images
    #[command(hide = true)]
    Images,
    Tools(ToolsArguments),
    Mcp(McpArguments),
    Serve(ServeArguments),
    Key(KeyArguments),
    Log(LogArguments),
    Executor(ExecutorArguments),
    Config(ConfigArguments),
    Trust(TrustArguments),
    Doctor(DoctorArguments),
    Completions(CompletionsArguments),
    Complete(CompleteArguments),
    /// Print the version
    #[command(hide = true)]
    Version,
    Supervise(SuperviseArguments),
    Spawner(SpawnerArguments),
    Egress(EgressArguments),
    Dial(DialArguments),
}

/// Reads the command line. Help and version are printed here, and so are mistakes.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Exit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(read) = alone::parse(&arguments) {
        return Ok(read);
    }
    Arguments::try_parse_from(arguments).map_err(|error| {
        // What cannot be printed now cannot be reported either.
        let _ = error.print();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
            _ => Exit::Usage,
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_declarations_hold_together() {
        Arguments::command().debug_assert();
    }
}
