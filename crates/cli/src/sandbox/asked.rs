//! What the command line asks of a sandbox by name, apart from what settings say anyway.
//!
//! A flag or `--set` is a wish that holds or is refused. The same setting in a file is the operator's,
//! for sandboxes of this machine, and says nothing to a server: neither which runtime and image a session
//! has, nor how long an action may take. A file that `--config` names was meant for this command.

use std::path::PathBuf;

use zareba_config::{
    Configuration, FilePlace, NetworkReach, Origin, RuntimeKind, WorkspaceMode as Mode,
};
use zareba_runtime::{
    NetworkRequest, Sandbox, SandboxRequest, SandboxSpec, Strictness, WorkspaceMode,
    request::grant_without_walls,
};
use zareba_runtime_remote::{TimeLimit, ZarebaOptions};

use super::{
    failure, spec,
    unread::{refuse_unread, set_by_hand},
};
use crate::{
    arguments::{HOME_TOOLS, LifeArguments, MOUNT, USER},
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
pub(super) const AMOUNTS_AND_NETWORK: [&str; 5] = ["network", "memory", "cpus", "pids", "disk"];

/// Settings of `native` that no other runtime has, and that a server is told of.
pub(super) const OF_NATIVE: [&str; 3] = ["native.allow", "native.deny", "native.workspace_mode"];

/// Settings of the command itself, wherever the sandbox is.
const OF_COMMAND: [&str; 3] = ["state.", "mcp.", "env."];

/// What the sandbox of a command shall be like.
///
/// # Errors
/// When a flag or `--set` asks for what this runtime or a server cannot be told, or for what nothing reads.
pub(crate) fn asked_spec(
    context: &Context,
    configuration: &Configuration,
) -> Result<SandboxSpec, Failure> {
    refuse_home_tools(context.server(), configuration)?;
    if context.server().is_some() {
        refuse_untold(configuration)?;
        refuse_untrusted_variables(configuration)?;
        return Ok(spec_for_server(configuration));
    }
    refuse_unread(configuration)?;
    let settings = &configuration.settings;
    let mut request = request(configuration, settings.runtime.kind);
    match settings.runtime.kind {
        kind @ (RuntimeKind::Cli | RuntimeKind::Local) => {
            let granted = grant_without_walls(kind.as_str(), &request);
            granted.map_err(|error| failure(&error))?;
        }
        // Whoever types a command for the own Engine is its operator: these are settings by now, and
        // what requests may have of an operator's machine does not bound them.
        RuntimeKind::Docker => {
            request.user = None;
            request.mounts.clear();
        }
        _ => {}
    }
    let mut spec = spec(settings);
    spec.workspace = spec.workspace.map(without_links).transpose()?;
    Ok(SandboxSpec { request, ..spec })
}

/// The same as a server is told of it: only what was asked for, and the server's own for the rest.
fn spec_for_server(configuration: &Configuration) -> SandboxSpec {
    let is_asked = |key: &str| is_asked(configuration, key);
    let kind = kind_for_server(configuration).unwrap_or(RuntimeKind::Native);
    let mut spec = spec(&configuration.settings);
    spec.request = request(configuration, kind);
    spec.image.take_if(|_| !is_asked("runtime.image"));
    spec.workspace.take_if(|_| !is_asked("runtime.workspace"));
    if !is_asked("runtime.best_effort") {
        spec.request.strictness = Strictness::Strict;
    }
    spec
}

/// What a server is told beside the spec.
pub(crate) fn server_options(configuration: &Configuration, life: &LifeArguments) -> ZarebaOptions {
    let limit = |key: &str| match is_asked(configuration, key) {
        true => TimeLimit::OfSpec,
        false => TimeLimit::OfServer,
    };
    let timeout = limit("shell.timeout");
    let is_ours = timeout == TimeLimit::OfSpec;
    ZarebaOptions {
        runtime: kind_for_server(configuration).map(|kind| kind.as_str().to_owned()),
        timeout,
        no_change_timeout: limit("shell.no_change_timeout"),
        action_timeout: is_ours.then_some(configuration.settings.shell.timeout),
        limits: life.limits(),
        labels: life.labels.iter().cloned().collect(),
        ..ZarebaOptions::default()
    }
}

/// The runtime that a server is asked for; `None` leaves it to the server.
fn kind_for_server(configuration: &Configuration) -> Option<RuntimeKind> {
    is_asked(configuration, "runtime.kind").then_some(configuration.settings.runtime.kind)
}

/// Whether a setting was given for this command: by a flag, by `--set`, by the environment or by a file
/// that was named. Files that lie in their usual places are for sandboxes of this machine.
fn is_asked(configuration: &Configuration, key: &str) -> bool {
    match configuration.origin(key) {
        Origin::Default => false,
        Origin::Flag { .. } | Origin::Variable { .. } => true,
        Origin::File { path, .. } => {
            let mut files = configuration.files.iter();
            files.any(|file| file.place == FilePlace::Named && file.path == path)
        }
    }
}

/// Programs in a home are shown by `native` on the machine that the home is on.
fn refuse_home_tools(server: Option<&str>, configuration: &Configuration) -> Result<(), Failure> {
    let is_asked = matches!(configuration.origin("native.home_tools"), Origin::Flag { name } if name == HOME_TOOLS);
    let runtime = &configuration.settings.runtime;
    let reason = match (server, runtime.kind, &runtime.image) {
        _ if !is_asked => return Ok(()),
        (Some(_), ..) => "cannot be told to a server, whose sandboxes do not see your home",
        (None, RuntimeKind::Native, None) => return Ok(()),
        (None, RuntimeKind::Native, Some(_)) => {
            "is not for images, which have programs of their own"
        }
        (None, ..) => "is for the runtime `native` alone",
    };
    Err(Failure::new(
        Exit::Usage,
        format!("`{HOME_TOOLS}` {reason}"),
    ))
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
pub(super) fn request(configuration: &Configuration, kind: RuntimeKind) -> SandboxRequest {
    let settings = &configuration.settings;
    let is_asked = |key: &str| matches!(configuration.origin(key), Origin::Flag { .. });
    let (native, docker) = (&settings.native, &settings.docker);
    let is_docker = kind == RuntimeKind::Docker;
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
fn refuse_untold(configuration: &Configuration) -> Result<(), Failure> {
    let kind = kind_for_server(configuration).unwrap_or(RuntimeKind::Native);
    for key in set_by_hand(configuration) {
        if !is_told(key, kind) {
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
