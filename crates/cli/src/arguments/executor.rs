//! `zareba executor`: the command line of OpenHands' action execution server, and ours.

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, ValueEnum};

/// The login name that OpenHands' server takes when none is given.
pub(crate) const DEFAULT_USERNAME: &str = "openhands";

/// Perform actions that come over HTTP, until stopped
#[derive(Args, Debug)]
#[command(after_help = "\
Takes the command line of OpenHands' action execution server, so that it can be started in its
place. SESSION_API_KEY is the key that clients have to show.

Example:
  zareba executor --unix /tmp/agent.sock --working-dir ./project
  curl --unix-socket /tmp/agent.sock http://localhost/alive")]
pub(crate) struct ExecutorArguments {
    /// The TCP port to listen on; 0 takes a free one
    #[arg(value_name = "PORT", required_unless_present_any = ["unix", "listen_fd"])]
    pub(crate) port: Option<u16>,
    /// Where shells start; made when missing [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// Plugins that the client asks for: jupyter, agent_skills, vscode
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) plugins: Vec<String>,
    /// Run shells as this user; made when missing, which takes root [default: RUNTIME_USERNAME, otherwise openhands]
    #[arg(long, value_name = "NAME")]
    pub(crate) username: Option<String>,
    /// The number of that user when it is made
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) user_id: u32,
    #[command(flatten)]
    pub(crate) browser: BrowserArguments,
    #[command(flatten)]
    pub(crate) ours: OwnArguments,
}

/// What is said of a browser.
#[derive(Args, Debug)]
pub(crate) struct BrowserArguments {
    /// Offer a browser
    #[arg(long, overrides_with = "no_enable_browser")]
    pub(crate) enable_browser: bool,
    /// Offer no browser
    #[arg(long)]
    pub(crate) no_enable_browser: bool,
    #[command(flatten)]
    pub(crate) eval: Eval,
}

/// The task of an evaluation.
#[derive(Args, Debug)]
pub(crate) struct Eval {
    /// A BrowserGym task; needs a browser
    #[arg(long = "browsergym-eval-env", value_name = "TASK", num_args = 1..)]
    pub(crate) task: Vec<String>,
}

/// What OpenHands' server does not have.
#[derive(Args, Debug)]
#[command(next_help_heading = "Beyond OpenHands")]
pub(crate) struct OwnArguments {
    /// Listen on a Unix socket that only its owner can open
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "host"])]
    pub(crate) unix: Option<PathBuf>,
    /// The address to listen on [default: 0.0.0.0 with a session key, otherwise 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    pub(crate) host: Option<IpAddr>,
    /// Listen to the network without a session key: whoever reaches the port may run commands
    #[arg(long)]
    pub(crate) allow_network_without_key: bool,
    /// Where undo history and long outputs are kept [default: a place that goes with us]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The shell [default: bash where it is found, otherwise sh]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) shell: Option<PathBuf>,
    /// Which paths file actions may name
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArgument>,
    /// Write `ready` to this descriptor, and close it, once actions can run
    #[arg(long, value_name = "N")]
    pub(crate) ready_fd: Option<u16>,
    /// Stop when this descriptor reaches its end, as the pipe to a parent does that is gone
    #[arg(long, value_name = "N")]
    pub(crate) lifeline_fd: Option<u16>,
    #[command(flatten)]
    pub(crate) supervised: SupervisedArguments,
}

/// What a supervisor hands over to the executor in its sandbox.
#[derive(Args, Debug)]
pub(crate) struct SupervisedArguments {
    /// Listen on a Unix socket that is open as this descriptor
    #[arg(long, value_name = "N", hide = true, conflicts_with_all = ["port", "host", "unix"])]
    pub(crate) listen_fd: Option<u16>,
    /// Read the session key from this descriptor
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) key_fd: Option<u16>,
    /// Keep stand-ins for guarded names in the working directory
    #[arg(long, hide = true)]
    pub(crate) hold_working_dir: bool,
}

/// Which paths file actions may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArgument {
    // Not documentation, which clap would print as a list.
    // Whatever the user may open.
    Anywhere,
    // Only what stays inside the working directory.
    Workspace,
}

impl ScopeArgument {
    /// The word that settings use.
    pub(crate) fn as_setting(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Workspace => "workspace",
        }
    }
}
