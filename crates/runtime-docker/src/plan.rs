//! Everything that is decided about a sandbox before the Engine hears of it.
//!
//! Choices that depend on this machine are made here, once: who programs inside run as, what is
//! mounted by its real path, what the network is. `request` only writes it down.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use zareba_runtime::{
    RuntimeError, SandboxId, SandboxSpec, Variables,
    guarded::{Guarded, GuardedPath, Guarding, guard},
};

use crate::{
    Debugging, DockerOptions, EnginePlace, NetworkChoice, Reach, RootMode, SandboxUser, VolumeMode,
    VolumeRequest, VolumeSource, WorkspaceOwnership,
    pin::Pinned,
    volumes::{MountRules, VolumeError, check_target},
};

/// Who a sandbox belongs to when we are root and nobody else was named: OpenHands' user.
const UNPRIVILEGED: u32 = 1000;

/// What an operator can do where a name cannot be guarded.
pub(crate) const GUARD_REMEDY: &str =
    "leave it out of `docker.guarded_names`, or copy the files in without a workspace";

/// What a container is called, as OpenHands looks for it.
pub(crate) fn container_name(id: &SandboxId) -> String {
    format!("openhands-runtime-{id}")
}

/// What is decided about a sandbox.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: SandboxId,
    pub(crate) image: String,
    pub(crate) user: Identity,
    /// The given workspace, by its real path.
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) volumes: Vec<Mounted>,
    /// What cannot be changed in the workspace, once it is known.
    pub(crate) guarded: Vec<GuardedPath>,
    /// What is mounted from this machine, as it was when that was decided.
    pub(crate) pinned: Vec<Pinned>,
    pub(crate) variables: Variables,
    pub(crate) no_change_timeout: Duration,
    pub(crate) relaxed: Vec<String>,
}

/// A user of this machine, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Something that is mounted, as it really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) source: MountedSource,
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
}

/// Where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountedSource {
    /// A path of this machine.
    Host(PathBuf),
    /// A volume of the Engine that stays.
    Named(String),
    /// A copy of a directory, made when something in it changes.
    Overlay { lower: PathBuf },
}

impl Plan {
    /// Decides, or says why there can be no such sandbox. Nothing is made yet, but a workspace
    /// that is missing or is to be given away.
    pub(crate) fn new(
        options: &DockerOptions,
        spec: &SandboxSpec,
        id: SandboxId,
    ) -> Result<Self, RuntimeError> {
        let mut pairs = options.environment.clone();
        pairs.extend(spec.environment.iter().cloned());
        let variables = Variables::new(pairs)?;
        let image = spec.image.clone().or_else(|| options.image.clone());
        let image = image.ok_or_else(|| {
            invalid("no image was named; name one for the sandbox or for the runtime `docker`")
        })?;
        check_target(&options.workspace_path).map_err(refused)?;
        check_network(options)?;
        if options.place == EnginePlace::Elsewhere {
            check_elsewhere(options, spec)?;
        }
        let rules = MountRules {
            state_dir: &options.state_dir,
            socket: options.engine.socket(),
            allowed: options.allowed.mounts.as_deref(),
        };
        let given = spec.workspace.as_deref();
        let workspace = given.map(|path| find_workspace(&rules, path)).transpose()?;
        let mut pinned = Vec::new();
        if let Some(workspace) = &workspace {
            pinned.push(pin(workspace, &options.workspace_path)?);
        }
        let user = identity(options, pinned.first())?;
        if let Some(workspace) = pinned.first() {
            make_usable(workspace, user, options.ownership)?;
        }
        let volumes = options.volumes.iter();
        let volumes: Vec<Mounted> = volumes
            .map(|volume| mounted(volume, &rules, options))
            .collect::<Result<_, _>>()?;
        for volume in &volumes {
            if let MountedSource::Host(path) = &volume.source {
                pinned.push(pin(path, &volume.target)?);
            }
        }
        let mut relaxed = relaxed(options, user, &volumes);
        if workspace.is_some() && options.guarded_names.is_empty() {
            relaxed.push("workspace: only what git acts on is guarded in it".to_owned());
        }
        Ok(Self {
            id,
            image,
            user,
            workspace,
            volumes,
            guarded: Vec::new(),
            pinned,
            variables,
            no_change_timeout: spec.no_change_timeout,
            relaxed,
        })
    }

    /// Makes what is missing of the guarded names. What is returned keeps them there until the executor does.
    pub(crate) fn guard_workspace(
        &mut self,
        options: &DockerOptions,
        private: &Path,
    ) -> std::io::Result<Option<Guarded>> {
        let Some(workspace) = &self.workspace else {
            return Ok(None);
        };
        let guarded = guard(&Guarding {
            workspace,
            names: &options.guarded_names,
            private,
            remedy: GUARD_REMEDY,
        })?;
        for path in &guarded.paths {
            let target = options.workspace_path.join(&path.below);
            self.pinned
                .push(Pinned::open(&workspace.join(&path.below), &target)?);
        }
        self.guarded.clone_from(&guarded.paths);
        Ok(Some(guarded))
    }

    /// Whether what is written inside can be seen, and started, on this machine.
    pub(crate) fn writes_to_machine(&self) -> bool {
        let writable = |mounted: &Mounted| {
            !mounted.read_only && matches!(mounted.source, MountedSource::Host(_))
        };
        self.workspace.is_some() || self.volumes.iter().any(writable)
    }
}

/// Where a sandbox's own bridge is called.
pub(crate) fn own_network(id: &SandboxId) -> String {
    format!("zareba-{id}")
}

pub(crate) fn invalid(message: impl Into<String>) -> RuntimeError {
    RuntimeError::Invalid {
        message: message.into(),
    }
}

fn refused(error: VolumeError) -> RuntimeError {
    match &error {
        VolumeError::Missing { source, .. } => invalid(format!("{error}: {source}")),
        _ => invalid(error.to_string()),
    }
}

fn check_network(options: &DockerOptions) -> Result<(), RuntimeError> {
    let has_none = options.network == NetworkChoice::Nothing;
    if has_none && !(options.ports.is_empty() && options.additional_networks.is_empty()) {
        return Err(invalid(
            "ports and additional networks need a network, and the sandbox has none; choose one",
        ));
    }
    if options.network == NetworkChoice::Host && !options.ports.is_empty() {
        return Err(invalid(
            "on the network of the machine no port is published: every port inside is one outside",
        ));
    }
    for host in &options.extra_hosts {
        let (name, address) = host.split_once(':').unwrap_or_default();
        let is_address = address == "host-gateway" || address.parse::<std::net::IpAddr>().is_ok();
        if name.is_empty() || !is_address {
            return Err(invalid(format!(
                "`{host}` is no extra host: write `NAME:ADDRESS`"
            )));
        }
    }
    Ok(())
}

/// Nothing of this machine can be had on another one.
fn check_elsewhere(options: &DockerOptions, spec: &SandboxSpec) -> Result<(), RuntimeError> {
    let refused = |what: &str, instead: &str| {
        Err(invalid(format!(
            "{what} of this machine cannot be had on the Engine's, which is another one; {instead}"
        )))
    };
    if spec.workspace.is_some() {
        return refused(
            "a workspace",
            "copy the files in, or use a volume of the Engine",
        );
    }
    let is_named = |volume: &VolumeRequest| matches!(volume.source, VolumeSource::Named(_));
    if !options.volumes.iter().all(is_named) {
        return refused("directories", "use volumes of the Engine, by their names");
    }
    if !options.ports.is_empty() {
        return refused(
            "ports",
            "leave them out: every port inside can be connected to",
        );
    }
    Ok(())
}

fn find_workspace(rules: &MountRules<'_>, path: &Path) -> Result<PathBuf, RuntimeError> {
    fs::create_dir_all(path).map_err(|source| {
        let path = path.to_owned();
        refused(VolumeError::Missing { path, source })
    })?;
    rules.resolve(path).map_err(refused)
}

fn pin(source: &Path, target: &Path) -> Result<Pinned, RuntimeError> {
    Pinned::open(source, target)
        .map_err(|error| invalid(format!("cannot use `{}`: {error}", source.display())))
}

fn identity(options: &DockerOptions, workspace: Option<&Pinned>) -> Result<Identity, RuntimeError> {
    let nobody = Identity {
        uid: UNPRIVILEGED,
        gid: UNPRIVILEGED,
    };
    if options.place == EnginePlace::Elsewhere {
        // Our own number means nobody there.
        return Ok(match options.user {
            SandboxUser::Numbers { uid, gid } => Identity { uid, gid },
            SandboxUser::Unprivileged => nobody,
        });
    }
    let us = Identity {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    };
    let owner = workspace.map(|workspace| Identity {
        uid: workspace.metadata.uid(),
        gid: workspace.metadata.gid(),
    });
    let chosen = match options.user {
        SandboxUser::Numbers { uid, gid } => Identity { uid, gid },
        // Nobody but root can open the socket of somebody else.
        SandboxUser::Unprivileged if us.uid != 0 => us,
        SandboxUser::Unprivileged => owner.filter(|owner| owner.uid != 0).unwrap_or(nobody),
    };
    if us.uid != 0 && chosen.uid != us.uid {
        return Err(invalid(format!(
            "programs inside cannot run as user {}: only root can talk to the executor of \
             somebody else; leave the user out, or run as root",
            chosen.uid
        )));
    }
    Ok(chosen)
}

/// Sees to it that the workspace can be written to from inside.
fn make_usable(
    workspace: &Pinned,
    user: Identity,
    ownership: WorkspaceOwnership,
) -> Result<(), RuntimeError> {
    let path = workspace.source.display();
    let found = &workspace.metadata;
    if !found.is_dir() {
        return Err(invalid(format!("the workspace `{path}` is no directory")));
    }
    let may = |bits: u32| found.mode() & bits == bits;
    let is_usable = (found.uid() == user.uid && may(0o700))
        || (found.uid() != user.uid && found.gid() == user.gid && may(0o070))
        || (found.uid() != user.uid && found.gid() != user.gid && may(0o007));
    match ownership {
        _ if is_usable => Ok(()),
        WorkspaceOwnership::Given => workspace
            .give(user.uid, user.gid)
            .map_err(|error| invalid(format!("cannot give the workspace `{path}`: {error}"))),
        WorkspaceOwnership::Kept => Err(invalid(format!(
            "user {}, as whom programs inside run, cannot write to the workspace `{path}`, which \
             belongs to user {}; `docker.give_workspace=true` gives it to them, and `docker.user_id` \
             chooses another user",
            user.uid,
            found.uid()
        ))),
    }
}

fn mounted(
    volume: &VolumeRequest,
    rules: &MountRules<'_>,
    options: &DockerOptions,
) -> Result<Mounted, RuntimeError> {
    check_target(&volume.target).map_err(refused)?;
    let source = match (&volume.source, volume.mode) {
        (VolumeSource::Host(path), VolumeMode::Overlay) => {
            if options.overlays.is_none() {
                return Err(invalid(
                    "there is no directory for the changes of volumes with the mode `overlay`; \
                     name one",
                ));
            }
            let lower = rules.resolve(path).map_err(refused)?;
            // These end a path in the options of an overlay.
            if lower.to_string_lossy().contains([',', ':', '\\']) {
                let path = lower.display();
                return Err(invalid(format!(
                    "`{path}` cannot be a volume with the mode `overlay`: its path has one of `,:\\`"
                )));
            }
            MountedSource::Overlay { lower }
        }
        (VolumeSource::Named(name), VolumeMode::Overlay) => {
            return Err(invalid(format!(
                "the volume `{name}` cannot have the mode `overlay`: only a directory can"
            )));
        }
        (VolumeSource::Host(path), _) => MountedSource::Host(rules.resolve(path).map_err(refused)?),
        (VolumeSource::Named(name), _) => MountedSource::Named(name.clone()),
    };
    Ok(Mounted {
        source,
        target: volume.target.clone(),
        read_only: volume.mode == VolumeMode::ReadOnly,
    })
}

/// What is weaker than it could be, in words.
fn relaxed(options: &DockerOptions, user: Identity, volumes: &[Mounted]) -> Vec<String> {
    let mut items = Vec::new();
    let mut add = |item: String| items.push(item);
    if user.uid == 0 {
        add("user: root of this machine, without capabilities".to_owned());
    }
    match &options.network {
        NetworkChoice::Nothing => {}
        NetworkChoice::Own(Reach::Inside) => {
            add("network: what listens on all addresses of this machine".to_owned());
        }
        NetworkChoice::Own(Reach::Everywhere) => add("network: reaches everywhere".to_owned()),
        NetworkChoice::Named(name) => add(format!("network: `{name}`, with all that is on it")),
        NetworkChoice::Host => add("network: the machine's own".to_owned()),
    }
    for name in &options.additional_networks {
        add(format!("network: `{name}`, with all that is on it"));
    }
    if options.relaxed.root == RootMode::Writable {
        add("root: the image's files can be changed, without a bound".to_owned());
    }
    for name in &options.relaxed.capabilities {
        add(format!("capability: {name}"));
    }
    if options.relaxed.debugging == Debugging::Allowed {
        add("system calls: debuggers".to_owned());
    }
    for volume in volumes.iter().filter(|volume| !volume.read_only) {
        let target = volume.target.display();
        match &volume.source {
            MountedSource::Host(path) => add(format!(
                "volume: `{}` can be changed at `{target}`",
                path.display()
            )),
            MountedSource::Named(name) => add(format!("volume: `{name}` has no bound")),
            MountedSource::Overlay { .. } => {
                add(format!("volume: changes at `{target}` have no bound"));
            }
        }
    }
    if !options.bind_address.is_loopback() && !options.ports.is_empty() {
        add(format!("ports: published on {}", options.bind_address));
    }
    for name in options.extra.keys() {
        add(format!("option: {name}"));
    }
    items
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
