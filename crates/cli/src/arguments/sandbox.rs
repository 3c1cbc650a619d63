//! What the commands take that make a sandbox of their own.

use std::path::PathBuf;

use clap::Args;
use zareba_config::Override;

use crate::{exit::Exit, failure::Failure};

/// What the sandbox shall be like.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArguments {
    /// The backend: native (a sandbox), cli (in this process) or local (a server of its own) [default: cli]
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// The directory to work in [default: an empty one that goes with the sandbox]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Set a variable of the sandbox's shells; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
}

impl SandboxArguments {
    /// These flags are short forms of settings.
    pub(crate) fn overrides(&self) -> Result<Vec<Override>, Failure> {
        let mut overrides = Vec::new();
        if let Some(runtime) = &self.runtime {
            overrides.push(Override::new("--runtime", "runtime.kind", runtime));
        }
        if let Some(workspace) = &self.workspace {
            let workspace = workspace.to_str().ok_or_else(|| {
                Failure::new(Exit::Usage, "the path of `--workspace` is not UTF-8")
            })?;
            overrides.push(Override::new("--workspace", "runtime.workspace", workspace));
        }
        for variable in &self.variables {
            let (name, value) = variable.split_once('=').ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    format!("`{variable}` is not of the form `NAME=VALUE`"),
                )
            })?;
            overrides.push(Override::new(
                format!("--env {name}"),
                format!("env.{name}"),
                value,
            ));
        }
        Ok(overrides)
    }
}
