//! `zareba tools ls`, `zareba tools schema` and `zareba tools call`.

use clap::{Args, ValueEnum};

use super::super::SandboxArguments;

/// Where the tools are: in a fresh sandbox, or in a session of a server.
#[derive(Args, Debug)]
pub(crate) struct ToolsSource {
    /// Use the tools of this session of the server (`--server`), not of a fresh sandbox
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The interpreter, as the sandbox sees it: a name, or a path such as `.venv/bin/python`
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub(crate) python: String,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

/// List the tools of entrypoints, or those of a session
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zareba tools ls --workspace . my_tools.TOOLS
  zareba tools ls --server http://127.0.0.1:7070 --session demo")]
pub(crate) struct ListToolsArguments {
    /// What to load, such as `module.function` or `module.Toolkit{"argument": 1}`
    #[arg(value_name = "ENTRYPOINT", required_unless_present = "session")]
    pub(crate) entrypoints: Vec<String>,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}

/// Print the definitions of tools, for a language model or an MCP client
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zareba tools schema --workspace . my_tools.search
  zareba tools schema --workspace . --format mcp my_tools.TOOLS")]
pub(crate) struct ToolSchemaArguments {
    /// What to load, such as `module.function` or `module.Toolkit{"argument": 1}`
    #[arg(value_name = "ENTRYPOINT", required_unless_present = "session")]
    pub(crate) entrypoints: Vec<String>,
    /// The form of the definitions
    #[arg(long, value_name = "FORM", default_value = "openai")]
    pub(crate) format: SchemaFormat,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}

/// The forms of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    // Not documentation, which clap would print as a list. As OpenAI's API takes it.
    Openai,
    // As MCP lists it.
    Mcp,
}

/// Call a tool of entrypoints, or one of a session
#[derive(Args, Debug)]
#[command(after_help = "\
An argument is `name=value`; the value is JSON, or else a text. A single JSON object gives all
arguments. Prints the result of the tool on standard output, and what the tool prints itself on
standard error. Ends with 1 when the tool fails.

Examples:
  zareba tools call add a=1 b=2 --workspace . --entrypoint my_tools.add
  zareba tools call search '{\"query\": \"x\"}' --server http://127.0.0.1:7070 --session demo")]
pub(crate) struct CallToolArguments {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// What to load; may be repeated
    #[arg(
        long = "entrypoint",
        value_name = "ENTRYPOINT",
        required_unless_present = "session"
    )]
    pub(crate) entrypoints: Vec<String>,
    /// End the call after this many seconds [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Pass the arguments on without checking them against the tool's schema
    #[arg(long)]
    pub(crate) unchecked: bool,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}
