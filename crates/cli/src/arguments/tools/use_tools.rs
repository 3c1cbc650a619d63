//! `zareba tools ls`, `zareba tools schema` and `zareba tools call`.

use clap::{Args, ValueEnum};

use super::super::SandboxArguments;

/// Where the tools are: in a fresh sandbox, or in a session of a server.
#[derive(Args, Debug)]
pub(crate) struct ToolsSource {
    /// The session of the server (`--server`) whose tools are meant, instead of a fresh sandbox
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
  zareba tools ls --server http://127.0.0.1:8420 --session demo")]
pub(crate) struct ListToolsArguments {
    /// What to load, such as `module.function` or `module.Toolkit{\"argument\": 1}`
    #[arg(value_name = "ENTRYPOINT", required_unless_present = "session")]
    pub(crate) entrypoints: Vec<String>,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}

/// Print the definitions of tools, as a language model or an MCP client takes them
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zareba tools schema --workspace . my_tools.search
  zareba tools schema --workspace . --format mcp my_tools.TOOLS")]
pub(crate) struct ToolSchemaArguments {
    /// What to load, such as `module.function` or `module.Toolkit{\"argument\": 1}`
    #[arg(value_name = "ENTRYPOINT", required_unless_present = "session")]
    pub(crate) entrypoints: Vec<String>,
    /// In which form
    #[arg(long, value_name = "FORM", default_value = "openai")]
    pub(crate) format: SchemaFormat,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}

/// The forms of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// As OpenAI's API takes it
    Openai,
    /// As MCP lists it
    Mcp,
}

/// Call a tool of entrypoints, or one of a session
#[derive(Args, Debug)]
#[command(after_help = "\
An argument is `name=value`; the value is JSON, or a text when it is none. One argument that is a
JSON object stands for all of them. What the tool prints goes to standard error, its result to
standard output. The exit code is 1 when the tool fails.

Examples:
  zareba tools call add a=1 b=2 --workspace . --entrypoint my_tools.add
  zareba tools call search '{\"query\": \"x\"}' --server http://127.0.0.1:8420 --session demo")]
pub(crate) struct CallToolArguments {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// What it is called with
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// What to load; may be repeated
    #[arg(
        long = "entrypoint",
        value_name = "ENTRYPOINT",
        required_unless_present = "session"
    )]
    pub(crate) entrypoints: Vec<String>,
    /// How many seconds it may take [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Hand the arguments over as they are, without looking at the tool's schema
    #[arg(long)]
    pub(crate) unchecked: bool,
    #[command(flatten)]
    pub(crate) source: ToolsSource,
}
