//! From settings to the runtime `docker`.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value as Json};
use zareba_config::{
    DockerSettings, Environment, FileScope as ScopeSetting, ImagePull, RuntimeKind, Settings,
    Value, openhands,
};
use zareba_executor::{FileScope, Linting};
use zareba_runtime_docker::{
    Allowed, Debugging, DockerOptions, EngineAddress, EnginePlace, EngineSources, GpuRequest,
    Lifetime, NetworkChoice, PortChoice, PortRequest, PullPolicy, RootMode, SandboxUser, Usage,
    VolumeRequest, WorkspaceOwnership,
};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Who says which image a sandbox has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The user of this command.
    Us,
    /// Clients of a server, who get what the operator has listed.
    Clients,
}

/// What the settings say of the runtime.
pub(super) fn options(
    settings: &Settings,
    environment: &Environment,
    state: &Path,
    lifetime: Lifetime,
    asker: Asker,
) -> Result<DockerOptions, Failure> {
    let docker = &settings.docker;
    let theirs = &settings.openhands.sandbox;
    let image = image(settings);
    let engine = engine(docker, environment)?;
    let strict = DockerOptions::hardened(engine, state.to_owned(), program(docker)?);
    let mut options = DockerOptions {
        place: match docker.remote {
            None => strict.place,
            Some(true) => EnginePlace::Elsewhere,
            Some(false) => EnginePlace::ThisMachine,
        },
        allowed: allowed(docker, image.as_deref(), asker),
        image,
        platform: docker.platform.clone().or_else(|| theirs.platform.clone()),
        pull: match docker.pull {
            ImagePull::Never => PullPolicy::Never,
            ImagePull::Missing => PullPolicy::Missing,
        },
        user: user(docker, theirs),
        workspace_path: settings.runtime.workspace_in_sandbox.clone(),
        ownership: if docker.give_workspace {
            WorkspaceOwnership::Given
        } else {
            WorkspaceOwnership::Kept
        },
        guarded_names: docker.guarded_names.clone(),
        volumes: volumes(settings)?,
        overlays: docker.overlays.clone(),
        environment: settings
            .env
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        usage: Usage {
            memory_bytes: docker.memory.bytes(),
            cpu_millis: docker.cpus.millis().into(),
            pids: docker.pids.into(),
            workspace_bytes: docker.disk.bytes(),
            ..Usage::usual()
        },
        gpu: gpu(docker, theirs),
        network: network(docker, theirs)?,
        additional_networks: [&docker.additional_networks[..], &theirs.additional_networks]
            .concat(),
        extra_hosts: docker.extra_hosts.clone(),
        ports: ports(&docker.ports)?,
        bind_address: bind_address(docker)?,
        extra: extra(docker, theirs),
        lifetime,
        shell: settings.shell.program.clone(),
        scope: match settings.files.scope {
            ScopeSetting::Anywhere => FileScope::WholeFilesystem,
            ScopeSetting::Workspace => FileScope::WorkingDirectory,
        },
        linting: if settings.files.auto_lint {
            Linting::On
        } else {
            Linting::Off
        },
        ..strict
    };
    options.warm.no_change_timeout = settings.shell.no_change_timeout;
    if asker == Asker::Clients {
        options.warm.sandboxes = settings.pool.docker.size.into();
    }
    options.relaxed.capabilities = docker.capabilities.clone();
    if docker.writable_root {
        options.relaxed.root = RootMode::Writable;
    }
    if docker.debuggers {
        options.relaxed.debugging = Debugging::Allowed;
    }
    Ok(options)
}

/// Whether the runtime has ever been used here. Where it has not, nobody is asked for an Engine.
pub(super) fn was_used(state: &Path) -> bool {
    state.join("docker/.instance").is_file()
}

/// Whether it has sandboxes here, or what is left of some.
pub(super) fn has_sandboxes(state: &Path) -> bool {
    let entries = fs::read_dir(state.join("docker"));
    let mut entries = entries.into_iter().flatten().flatten();
    entries.any(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
}

/// Whether sandboxes that name no image get one.
pub(super) fn has_image(settings: &Settings) -> bool {
    image(settings).is_some()
}

/// The image of sandboxes that name none.
fn image(settings: &Settings) -> Option<String> {
    let theirs = &settings.openhands.sandbox;
    let of_runtime = || {
        let is_ours = settings.runtime.kind == RuntimeKind::Docker;
        settings.runtime.image.clone().filter(|_| is_ours)
    };
    // OpenHands names a base image also when nobody did; that one has no meaning here.
    let unnamed = openhands::Sandbox::default().base_container_image;
    let base = || {
        let base = theirs.base_container_image.clone();
        base.filter(|_| theirs.base_container_image != unnamed)
    };
    let chosen = settings.docker.image.clone().or_else(of_runtime);
    chosen
        .or_else(|| theirs.runtime_container_image.clone())
        .or_else(base)
}

fn allowed(docker: &DockerSettings, image: Option<&str>, asker: Asker) -> Allowed {
    let listed = docker.allowed_images.clone();
    let mounts = docker.allowed_mounts.as_ref();
    Allowed {
        images: match asker {
            Asker::Us => listed,
            Asker::Clients => {
                Some(listed.unwrap_or_else(|| image.into_iter().map(str::to_owned).collect()))
            }
        },
        mounts: mounts.map(|mounts| mounts.iter().map(PathBuf::from).collect()),
    }
}

/// Where the docker command would look, unless the settings say it.
fn engine(docker: &DockerSettings, environment: &Environment) -> Result<EngineAddress, Failure> {
    let path = |name: &str| {
        let value = environment.get_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let config_dir = path("DOCKER_CONFIG").or_else(|| Some(path("HOME")?.join(".docker")));
    let sources = EngineSources {
        host: docker.engine.clone(),
        context: environment.get("DOCKER_CONTEXT").map(str::to_owned),
        config_dir: config_dir.unwrap_or_default(),
        // Without checking who answers, which the other one means, nothing is sent.
        tls_verify: path("DOCKER_TLS_VERIFY")
            .or_else(|| path("DOCKER_TLS"))
            .is_some(),
        cert_path: path("DOCKER_CERT_PATH"),
        runtime_dir: path("XDG_RUNTIME_DIR"),
    };
    EngineAddress::resolve(&sources)
        .or_fail(
            Exit::Configuration,
            "cannot tell where the Docker Engine is",
        )
        .map_err(|failure| failure.hint("`docker.engine`, or DOCKER_HOST, names it"))
}

fn program(docker: &DockerSettings) -> Result<PathBuf, Failure> {
    match &docker.program {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe().or_fail(Exit::Start, "cannot find our own program"),
    }
}

fn user(docker: &DockerSettings, theirs: &openhands::Sandbox) -> SandboxUser {
    match docker.user_id.or(theirs.user_id) {
        Some(uid) => SandboxUser::Numbers {
            uid,
            gid: docker.group_id.unwrap_or(uid),
        },
        None => SandboxUser::Unprivileged,
    }
}

/// Ours and OpenHands', whose workspace is one of them there and none here.
fn volumes(settings: &Settings) -> Result<Vec<VolumeRequest>, Failure> {
    let mut all = Vec::new();
    for (key, text) in [
        ("docker.volumes", Some(settings.docker.volumes.join(","))),
        (
            "sandbox.volumes",
            settings.openhands.sandbox.volumes.clone(),
        ),
    ] {
        let read = VolumeRequest::parse_list(&text.unwrap_or_default());
        all.extend(read.or_fail(Exit::Configuration, format!("cannot use `{key}`"))?);
    }
    all.retain(|volume| volume.target != settings.runtime.workspace_in_sandbox);
    Ok(all)
}

fn gpu(docker: &DockerSettings, theirs: &openhands::Sandbox) -> GpuRequest {
    let listed = |ids: &str| {
        let ids = ids.split(',').map(str::trim).filter(|id| !id.is_empty());
        GpuRequest::Devices(ids.map(str::to_owned).collect())
    };
    match (&docker.gpus, &theirs.cuda_visible_devices) {
        (Some(all), _) if all == "all" => GpuRequest::All,
        (Some(ids), _) => listed(ids),
        (None, Some(ids)) if theirs.enable_gpu => listed(ids),
        (None, None) if theirs.enable_gpu => GpuRequest::All,
        (None, _) => GpuRequest::None,
    }
}

/// The word for the network of a sandbox.
pub(super) fn network_name(settings: &Settings) -> &str {
    match settings.docker.network.as_str() {
        "none" if settings.openhands.sandbox.use_host_network => "host",
        word => word,
    }
}

fn network(docker: &DockerSettings, theirs: &openhands::Sandbox) -> Result<NetworkChoice, Failure> {
    match docker.network.as_str() {
        "none" if theirs.use_host_network => Ok(NetworkChoice::Host),
        "filtered" => {
            let message = "the runtime `docker` cannot filter its network";
            Err(Failure::new(Exit::Configuration, message)
                .hint("use `--runtime native` for that, or `--network none`, `internet` or `host`"))
        }
        word => Ok(NetworkChoice::named(word)),
    }
}

fn bind_address(docker: &DockerSettings) -> Result<IpAddr, Failure> {
    let deed = format!(
        "cannot use `docker.bind_address`, `{}`",
        docker.bind_address
    );
    docker
        .bind_address
        .parse()
        .or_fail(Exit::Configuration, deed)
}

fn ports(texts: &[String]) -> Result<Vec<PortRequest>, Failure> {
    let read = |text: &String| {
        port(text).ok_or_else(|| {
            let message = format!("`docker.ports` has `{text}`, which is no port");
            Failure::new(Exit::Configuration, message)
                .hint("write `80`, `8080:80` or `40000-49999`, with `NAME=` in front if you like")
        })
    };
    texts.iter().map(read).collect()
}

fn port(text: &str) -> Option<PortRequest> {
    let (variable, ports) = match text.split_once('=') {
        Some((name, ports)) => (Some(name.to_owned()), ports),
        None => (None, text),
    };
    let number = |text: &str| text.parse().ok().filter(|port| *port > 0);
    let choice = if let Some((outside, inside)) = ports.split_once(':') {
        PortChoice::Fixed {
            inside: number(inside)?,
            outside: number(outside)?,
        }
    } else if let Some((first, last)) = ports.split_once('-') {
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(PortChoice::Same { first, last })?
    } else {
        PortChoice::Any {
            inside: number(ports)?,
        }
    };
    Some(PortRequest { choice, variable })
}

/// Ours over OpenHands'.
fn extra(docker: &DockerSettings, theirs: &openhands::Sandbox) -> Map<String, Json> {
    let given = [&theirs.docker_runtime_kwargs, &docker.options];
    let entries = given.into_iter().flatten().flatten();
    entries
        .map(|(name, value)| (name.clone(), as_json(value)))
        .collect()
}

fn as_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(boolean) => Json::from(*boolean),
        Value::Integer(integer) => Json::from(*integer),
        Value::Float(float) => Json::from(*float),
        Value::Text(text) | Value::Datetime(text) => Json::from(text.as_str()),
        Value::List(items) => items.iter().map(as_json).collect(),
        Value::Table(entries) => entries
            .iter()
            .map(|(name, value)| (name.clone(), as_json(value)))
            .collect(),
    }
}

#[cfg(test)]
#[path = "docker_tests.rs"]
mod tests;
