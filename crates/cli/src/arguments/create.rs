//! `zareba create`.

use clap::Args;

use super::SandboxArguments;

/// Make a sandbox that lives on
#[derive(Args, Debug)]
#[command(after_help = "\
Prints its name. It lives until `zareba stop` ends it, or the machine.

Examples:
  zareba create --name build --workspace . --allow '*.crates.io'
  zareba exec build -- cargo build
  zareba stop build")]
pub(crate) struct CreateArguments {
    /// Its name: letters, digits, `-` and `_` [default: one that nobody else has]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
