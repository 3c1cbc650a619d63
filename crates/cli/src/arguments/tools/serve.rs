//! `zareba tools serve`.

use std::path::PathBuf;

use clap::Args;

use super::super::SandboxArguments;

/// Serve Python tools over HTTP, as CAMEL's tool server does
#[derive(Args, Debug)]
#[command(after_help = "\
An entrypoint is the path of a toolkit, a tool or a list of tools, such as
`camel.toolkits.MathToolkit`; arguments of a toolkit follow as JSON. Modules in the workspace can be
imported. Calls run inside a sandbox.

Callers show a token, as `Authorization: Bearer TOKEN` or as a password: that of `--token-file`, or
one that is made and kept in a file that only you can read, as long as the server runs. CAMEL's own
`RemoteHttpRuntime`, without its `build()`, shows it when its host is `any:TOKEN@127.0.0.1`.
Addresses that others can reach need TLS. See docs/camel.md.

Examples:
  zareba tools serve --workspace . --python .venv/bin/python camel.toolkits.MathToolkit
  zareba tools serve --workspace . --port 0 'my_tools.Counter{\"start\": 5}'
  zareba tools serve --open --workspace . my_tools.TOOLS
  zareba tools serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem my_tools.TOOLS")]
pub(crate) struct ServeToolsArguments {
    /// What to serve
    #[arg(value_name = "ENTRYPOINT", required = true)]
    pub(crate) entrypoints: Vec<String>,
    /// The address or name to listen on; one that others can reach needs TLS
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to listen on; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// A file with the token that callers must show, of 32 characters or more
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask for no token: everyone who reaches the port may call
    #[arg(long)]
    pub(crate) open: bool,
    /// The certificate chain for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen anywhere without TLS, because a proxy in front does it
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) behind_tls_proxy: bool,
    /// The interpreter, as the sandbox sees it: a name, or a path such as `.venv/bin/python`
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub(crate) python: String,
    /// How many calls run at once, besides asynchronous ones [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u8>,
    /// End a call after this many seconds [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Refuse arguments that do not fit the tool's schema; CAMEL passes everything on
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use zareba_tools::CALL_TIMEOUT;

    use super::*;

    #[test]
    fn the_limit_of_a_call_is_the_one_that_the_help_tells() {
        let command = ServeToolsArguments::augment_args(Command::new("serve"));
        let mut arguments = command.get_arguments();
        let timeout = arguments.find(|argument| argument.get_id() == "timeout");
        let help = timeout.and_then(|it| it.get_help()).unwrap().to_string();
        let told = format!("[default: {}]", CALL_TIMEOUT.as_secs());
        assert!(help.ends_with(&told), "{help}");
    }
}
