//! `zareba tools serve`.

use std::path::PathBuf;

use clap::Args;

use super::super::SandboxArguments;

/// Serve Python tools over HTTP, as CAMEL's tool server does
#[derive(Args, Debug)]
#[command(after_help = "\
An entrypoint is the path of a toolkit, a tool or a list of tools, such as
`camel.toolkits.MathToolkit`; arguments of a toolkit follow as JSON. Modules in the workspace can be
imported. An unmodified `RemoteHttpRuntime(host, port)` of CAMEL uses what is served, without its
`build()`. Calls run inside a sandbox. See docs/camel.md.

Examples:
  zareba tools serve --workspace . --python .venv/bin/python camel.toolkits.MathToolkit
  zareba tools serve --workspace . --port 0 'my_tools.Counter{\"start\": 5}'
  zareba tools serve --host 0.0.0.0 --token-file ./token --workspace . my_tools.TOOLS")]
pub(crate) struct ServeToolsArguments {
    /// What to serve
    #[arg(value_name = "ENTRYPOINT", required = true)]
    pub(crate) entrypoints: Vec<String>,
    /// The address or name to listen on; one that others can reach needs `--token` or `--open`
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to listen on; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// What callers must show as `Authorization: Bearer TOKEN`; CAMEL's own client cannot
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["token_file", "open"])]
    pub(crate) token: Option<String>,
    /// A file with that token, which then is in no list of processes
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let everybody call who reaches the port
    #[arg(long)]
    pub(crate) open: bool,
    /// The interpreter, as the sandbox sees it: a name, or a path such as `.venv/bin/python`
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub(crate) python: String,
    /// How many calls run at once, besides asynchronous ones [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u8>,
    /// How many seconds a call may take [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Refuse arguments that do not fit the schema of their tool; CAMEL passes everything on
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
