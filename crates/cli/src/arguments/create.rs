//! `zareba create`.

use clap::Args;

use super::{LifeArguments, SandboxArguments};

/// Make a sandbox that stays until it is stopped
#[derive(Args, Debug)]
#[command(after_help = "\
Prints its name. `zareba stop` ends it, and so does a restart of the machine.

Examples:
  zareba create --name build --workspace . --allow pypi.org --allow files.pythonhosted.org
  zareba exec build python3 -m venv .venv
  zareba exec build .venv/bin/pip install ruff
  zareba stop build")]
pub(crate) struct CreateArguments {
    /// The sandbox's name: letters, digits, `-` and `_` [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
    #[command(flatten)]
    pub(crate) life: LifeArguments,
}
