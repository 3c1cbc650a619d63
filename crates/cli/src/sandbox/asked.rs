//! What the command line asks of a sandbox by name, apart from what settings say anyway.
//!
//! A flag or `--set` is a wish that holds or is refused. The same setting in a file is the operator's,
//! for sandboxes of this machine, and says nothing to a server.

use std::path::PathBuf;

use zareba_config::{
    Configuration, NetworkReach, Origin, Override, RuntimeKind, WorkspaceMode as Mode,
};
use zareba_runtime::{
    NetworkRequest, Sandbox, SandboxRequest, SandboxSpec, Strictness, WorkspaceMode,
    request::grant_without_walls,
};

use super::{failure, spec};
use crate::{
    arguments::{MOUNT, USER},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// Settings that a server is told of, beside those of the runtime that is asked for.
const CARRIED: [&str; 6] = [
    "runtime.kind",
    "runtime.image",
    "runtime.workspace",
    "runtime.best_effort",
    "shell.timeout",
    "shell.no_change_timeout",
];

/// What a server is told of the runtime's own settings.
const AMOUNTS_AND_NETWORK: [&str; 5] = ["network", "memory", "cpus", "pids", "disk"];

/// Settings of `native` that no other runtime has, and that a server is told of.
const OF_NATIVE: [&str; 3] = ["native.allow", "native.deny", "native.workspace_mode"];

/// Settings of the command itself, wherever the sandbox is.
const OF_COMMAND: [&str; 3] = ["state.", "mcp.", "env."];

/// What the sandbox of a command shall be like.
///
/// # Errors
/// When a flag or `--set` asks for what this runtime or a server cannot be told.
pub(crate) fn asked_spec(
    context: &Context,
    configuration: &Configuration,
) -> Result<SandboxSpec, Failure> {
    let settings = &configuration.settings;
    let mut request = request(configuration);
    match (context.server(), settings.runtime.kind) {
        (Some(_), kind) => {
            refuse_untold(&context.globals.set, kind)?;
            refuse_untrusted_variables(configuration)?;
        }
        (None, kind @ (RuntimeKind::Cli | RuntimeKind::Local)) => {
            let granted = grant_without_walls(kind.as_str(), &request);
            granted.map_err(|error| failure(&error))?;
        }
        // Whoever types a command for the own Engine is its operator: these are settings by now, and
        // what requests may have of an operator's machine does not bound them.
        (None, RuntimeKind::Docker) => {
            request.user = None;
            request.mounts.clear();
        }
        (None, _) => {}
    }
    let mut spec = spec(settings);
    if context.server().is_none() {
        spec.workspace = spec.workspace.map(without_links).transpose()?;
    }
    Ok(SandboxSpec { request, ..spec })
}

/// The directory that a path leads to, which is decided here and once.
fn without_links(path: PathBuf) -> Result<PathBuf, Failure> {
    let real = std::fs::canonicalize(&path);
    real.or_fail(
        Exit::Usage,
        format!("cannot use the workspace `{}`", path.display()),
    )
}

/// Variables of a project file go to no server: its sandboxes may be such as have no walls, where a
/// variable such as `LD_PRELOAD` or `PROMPT_COMMAND` chooses what runs on that machine.
fn refuse_untrusted_variables(configuration: &Configuration) -> Result<(), Failure> {
    let untrusted = |file: &PathBuf| {
        let mut files = configuration.files.iter();
        files.any(|used| !used.is_trusted && used.path == *file)
    };
    for (name, _) in configuration.settings.env.iter() {
        let key = format!("env.{name}");
        if let Some(file) = configuration.origin(&key).file().filter(untrusted) {
            let file = file.display();
            let message = format!(
                "`{key}` of `{file}` is sent to a server only when you have trusted the file"
            );
            return Err(Failure::new(Exit::Usage, message)
                .hint(format!("run `zareba trust {file}`, or remove the variable")));
        }
    }
    Ok(())
}

/// Says what was asked for and does not hold.
pub(crate) fn tell_not_held(sandbox: &dyn Sandbox) {
    for field in sandbox.not_held() {
        say::warning(format_args!("not held: {field}"));
    }
}

/// What was asked for by name.
fn request(configuration: &Configuration) -> SandboxRequest {
    let settings = &configuration.settings;
    let is_asked = |key: &str| matches!(configuration.origin(key), Origin::Flag { .. });
    let (native, docker) = (&settings.native, &settings.docker);
    let is_docker = settings.runtime.kind == RuntimeKind::Docker;
    let section = if is_docker { "docker" } else { "native" };
    let is_flag = |key: &str, flag: &str| matches!(configuration.origin(key), Origin::Flag { name } if name == flag);
    let is_set = |name: &str| is_asked(&format!("{section}.{name}"));
    let own = match native.network {
        NetworkReach::None => "none",
        NetworkReach::Filtered => "filtered",
        NetworkReach::Host => "host",
    };
    // `filtered` is no word of `docker`, which refuses it by its name.
    let is_filtered = is_asked("native.network") && native.network == NetworkReach::Filtered;
    let mode = match () {
        () if is_filtered => Some(own.to_owned()),
        () if is_set("network") => Some(if is_docker {
            docker.network.clone()
        } else {
            own.to_owned()
        }),
        () => None,
    };
    let network = NetworkRequest {
        mode,
        allow: is_asked("native.allow").then(|| native.allow.clone()),
        deny: match is_asked("native.deny") {
            true => native.deny.clone(),
            false => Vec::new(),
        },
    };
    SandboxRequest {
        network: (network != NetworkRequest::default()).then_some(network),
        memory_bytes: is_set("memory").then(|| match is_docker {
            true => docker.memory.bytes(),
            false => native.memory.bytes(),
        }),
        cpu_millis: is_set("cpus").then(|| match is_docker {
            true => docker.cpus.millis(),
            false => native.cpus.millis(),
        }),
        pids: is_set("pids").then_some(if is_docker { docker.pids } else { native.pids }),
        disk_bytes: is_set("disk").then(|| match is_docker {
            true => docker.disk.bytes(),
            false => native.disk.bytes(),
        }),
        workspace_mode: is_asked("native.workspace_mode").then_some(match native.workspace_mode {
            Mode::CopyOnWrite => WorkspaceMode::CopyOnWrite,
            Mode::ReadWrite => WorkspaceMode::ReadWrite,
            Mode::ReadOnly => WorkspaceMode::ReadOnly,
        }),
        user: docker
            .user_id
            .filter(|_| is_flag("docker.user_id", USER))
            .map(|uid| format!("{uid}:{}", docker.group_id.unwrap_or(uid))),
        mounts: match is_flag("docker.volumes", MOUNT) {
            true => docker.volumes.clone(),
            false => Vec::new(),
        },
        plugins: Vec::new(),
        strictness: strictness(settings),
    }
}

/// What becomes of what cannot be held.
pub(super) fn strictness(settings: &zareba_config::Settings) -> Strictness {
    match settings.runtime.best_effort {
        true => Strictness::BestEffort,
        false => Strictness::Strict,
    }
}

/// Refuses what is set for this command and cannot be told to a server.
fn refuse_untold(set: &[String], kind: RuntimeKind) -> Result<(), Failure> {
    for argument in set {
        let Ok(Override { key, .. }) = Override::parse(argument) else {
            continue;
        };
        if !is_told(&key, kind) {
            let message = format!("`--set {key}` cannot be told to a server");
            return Err(Failure::new(Exit::Usage, message).hint(
                "it is a setting of the server's operator; leave it out, or leave out `--server`",
            ));
        }
    }
    Ok(())
}

fn is_told(key: &str, kind: RuntimeKind) -> bool {
    let section = match kind {
        RuntimeKind::Docker => "docker.",
        _ => "native.",
    };
    let of_runtime = key.strip_prefix(section);
    CARRIED.contains(&key)
        || OF_NATIVE.contains(&key)
        || of_runtime.is_some_and(|name| AMOUNTS_AND_NETWORK.contains(&name))
        || OF_COMMAND.iter().any(|section| key.starts_with(section))
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
