//! What the commands take that make a sandbox.

use std::path::{Path, PathBuf};

use clap::Args;
use zareba_config::{Override, RuntimeKind};

use crate::{exit::Exit, failure::Failure};

/// The flag that says who programs run as.
pub(crate) const USER: &str = "--user";
/// The flag that says what of the machine is seen inside.
pub(crate) const MOUNT: &str = "--mount";

/// The flag that shows programs in the user's home.
pub(crate) const HOME_TOOLS: &str = "--home-tools";

/// What the sandbox shall be like. Each flag is a short form of a setting.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArguments {
    /// The backend: native (a sandbox), docker (a container), cli (in this process) or local (a server of its own) [default: native]
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// The image whose files it has; docker needs one [default: the system of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) image: Option<String>,
    /// The directory to work in [default: an empty one that goes with the sandbox]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// How that directory appears: copy-on-write, read-write or read-only [default: copy-on-write]
    #[arg(long, value_name = "MODE")]
    pub(crate) workspace_mode: Option<String>,
    /// See programs of well-known installers in your home (cargo, uv, pyenv, nvm and others), read-only
    #[arg(long)]
    pub(crate) home_tools: bool,
    /// What can be reached: none, filtered or host; for docker also machine, internet or a network's name [default: none]
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// Allow this host, and filter the network; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny this host, whatever `--allow` says; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// How much memory it may use, such as 512MiB [default: 2GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// How many processors it may keep busy, such as 0.5 [default: 2]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<String>,
    /// How many processes and threads it may have [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<String>,
    /// How much its changes to files may take [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<String>,
    /// Run programs as this UID, UID:GID or root; for docker [default: the owner of the workspace, never root]
    #[arg(short, long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// More directories of the machine.
    #[arg(
        long = "mount",
        value_name = "MOUNT",
        help = "Mount a directory of the machine, as HOST:INSIDE[:MODE] with ro or rw; for docker; may be repeated"
    )]
    pub(crate) mounts: Vec<String>,
    /// Set a variable of the sandbox's shells; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// Start also when the runtime cannot hold a limit, and name it
    #[arg(long)]
    pub(crate) best_effort: bool,
}

impl SandboxArguments {
    /// These flags are short forms of settings.
    pub(crate) fn overrides(&self) -> Result<Vec<Override>, Failure> {
        let mut overrides = Vec::new();
        let workspace = self.workspace.as_deref().map(workspace).transpose()?;
        let plain = [
            ("--runtime", "runtime.kind", self.runtime.as_deref()),
            ("--image", "runtime.image", self.image.as_deref()),
            ("--workspace", "runtime.workspace", workspace),
            (
                "--workspace-mode",
                "native.workspace_mode",
                self.workspace_mode.as_deref(),
            ),
        ];
        for (flag, key, value) in plain {
            overrides.extend(value.map(|value| Override::new(flag, key, value)));
        }
        if self.home_tools {
            let key = "native.home_tools";
            overrides.push(Override::new(HOME_TOOLS, key, "read-only"));
        }
        if let Some(network) = self.network()? {
            let keys = network_keys(network, self.runtime.as_deref());
            overrides.extend(keys.map(|key| Override::new("--network", *key, network)));
        }
        // Which runtime it will be is known when all settings are read.
        for (flag, name, value) in [
            ("--memory", "memory", &self.memory),
            ("--cpus", "cpus", &self.cpus),
            ("--pids", "pids", &self.pids),
            ("--disk", "disk", &self.disk),
        ] {
            for section in ["native", "docker"] {
                let key = format!("{section}.{name}");
                overrides.extend(value.iter().map(|value| Override::new(flag, &key, value)));
            }
        }
        for (flag, key, rules) in [
            ("--allow", "native.allow", &self.allow),
            ("--deny", "native.deny", &self.deny),
        ] {
            if !rules.is_empty() {
                let list = serde_json::Value::from(rules.clone()).to_string();
                overrides.push(Override::new(flag, key, list));
            }
        }
        if let Some((uid, gid)) = self.user.as_deref().map(identity).transpose()? {
            overrides.push(Override::new(USER, "docker.user_id", uid));
            overrides.extend(gid.map(|gid| Override::new(USER, "docker.group_id", gid)));
        }
        if !self.mounts.is_empty() {
            let list = serde_json::Value::from(self.mounts.clone()).to_string();
            overrides.push(Override::new(MOUNT, "docker.volumes", list));
        }
        for variable in &self.variables {
            let (name, value) = split_variable(variable)?;
            let (flag, key) = (format!("--env {name}"), format!("env.{name}"));
            overrides.push(Override::new(flag, key, value));
        }
        if self.best_effort {
            overrides.push(Override::new(
                "--best-effort",
                "runtime.best_effort",
                "true",
            ));
        }
        Ok(overrides)
    }

    /// Whoever lets a host through wants a network that it can come through.
    fn network(&self) -> Result<Option<&str>, Failure> {
        match self.network.as_deref() {
            None if !self.allow.is_empty() => Ok(Some("filtered")),
            Some(network @ ("none" | "host")) if !self.allow.is_empty() => {
                let message = format!("`--allow` has no meaning with `--network {network}`");
                Err(Failure::new(Exit::Usage, message).hint("`--allow` alone filters the network"))
            }
            network => Ok(network),
        }
    }
}

/// `UID`, `UID:GID` or `root`, in two.
fn identity(user: &str) -> Result<(&str, Option<&str>), Failure> {
    let (uid, gid) = match user {
        "root" => ("0", Some("0")),
        _ => match user.split_once(':') {
            Some((uid, gid)) => (uid, Some(gid)),
            None => (user, None),
        },
    };
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    if is_number(uid) && gid.is_none_or(is_number) {
        return Ok((uid, gid));
    }
    let message = format!("`{user}` is no user: programs run as a number");
    Err(Failure::new(Exit::Usage, message)
        .hint("write `--user UID` or `--user UID:GID`, or `root`"))
}

/// The settings that a network belongs to. Names of networks are known to `docker` alone.
fn network_keys(network: &str, runtime: Option<&str>) -> std::slice::Iter<'static, &'static str> {
    let is_docker = runtime == Some(RuntimeKind::Docker.as_str());
    match network {
        "none" | "host" => ["native.network", "docker.network"][..].iter(),
        // It is no word of `docker`, which says so.
        "filtered" => ["native.network"][..].iter(),
        _ if is_docker => ["docker.network"][..].iter(),
        _ => ["native.network"][..].iter(),
    }
}

/// `NAME=VALUE`, in two.
pub(crate) fn split_variable(variable: &str) -> Result<(&str, &str), Failure> {
    variable.split_once('=').ok_or_else(|| {
        let message = format!("`{variable}` is not of the form `NAME=VALUE`");
        Failure::new(Exit::Usage, message)
    })
}

fn workspace(path: &Path) -> Result<&str, Failure> {
    path.to_str()
        .ok_or_else(|| Failure::new(Exit::Usage, "the path of `--workspace` is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        sandbox: SandboxArguments,
    }

    fn overrides(words: &[&str]) -> Result<Vec<String>, Failure> {
        let words = ["zareba"].iter().chain(words);
        let line = Line::try_parse_from(words).unwrap();
        let overrides = line.sandbox.overrides()?;
        let shown = |setting: Override| format!("{}={}", setting.key, setting.value);
        Ok(overrides.into_iter().map(shown).collect())
    }

    #[test]
    fn each_flag_is_a_setting() {
        let words = "--runtime native --image debian --workspace /w --workspace-mode read-only \
                     --home-tools --memory 1G --cpus 0.5 --pids 99 --disk 2G --deny b.example -e A=1=2";
        let words: Vec<&str> = words.split_whitespace().collect();
        assert_eq!(
            overrides(&words).unwrap(),
            [
                "runtime.kind=native",
                "runtime.image=debian",
                "runtime.workspace=/w",
                "native.workspace_mode=read-only",
                "native.home_tools=read-only",
                "native.memory=1G",
                "docker.memory=1G",
                "native.cpus=0.5",
                "docker.cpus=0.5",
                "native.pids=99",
                "docker.pids=99",
                "native.disk=2G",
                "docker.disk=2G",
                "native.deny=[\"b.example\"]",
                "env.A=1=2",
            ]
        );
    }

    #[test]
    fn whoever_allows_a_host_gets_a_filtered_network() {
        let filtered = ["native.network=filtered", "native.allow=[\"a\",\"b:1\"]"];
        assert_eq!(
            overrides(&["--allow", "a", "--allow", "b:1"]).unwrap(),
            filtered
        );
        let words = ["--network", "filtered", "--allow", "a", "--allow", "b:1"];
        assert_eq!(overrides(&words).unwrap(), filtered);
        for network in ["none", "host"] {
            let refused = overrides(&["--network", network, "--allow", "a"]).unwrap_err();
            assert_eq!(refused.exit(), Exit::Usage, "{network}");
        }
    }
    #[test]
    fn a_network_by_its_name_is_for_docker() {
        let keys = |words: &[&str]| overrides(words).unwrap();
        assert_eq!(
            keys(&["--runtime", "docker", "--network", "tools"]),
            ["runtime.kind=docker", "docker.network=tools"]
        );
        assert_eq!(keys(&["--network", "tools"]), ["native.network=tools"]);
    }
}
