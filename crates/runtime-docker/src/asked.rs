//! From what a caller asks of a sandbox to the options that it is made with.

use zareba_runtime::{
    Grant, NetworkGrant, NetworkRequest, RequestField, RuntimeError, SandboxRequest, WorkspaceMode,
    request::{Shortfall, refuse_plugins},
};

use crate::{
    DockerOptions, NetworkChoice, Reach, SandboxUser, VolumeRequest, VolumeSource, docker::NAME,
    plan::invalid,
};

impl NetworkChoice {
    /// Reads the word of settings and requests; a word that is none of ours is the name of a network
    /// of the Engine.
    pub fn named(word: &str) -> Self {
        match word {
            "none" => Self::Nothing,
            "machine" => Self::Own(Reach::Inside),
            "internet" => Self::Own(Reach::Everywhere),
            "host" => Self::Host,
            name => Self::Named(name.to_owned()),
        }
    }

    /// The word for it.
    pub fn word(&self) -> &str {
        match self {
            Self::Nothing => "none",
            Self::Own(Reach::Inside) => "machine",
            Self::Own(Reach::Everywhere) => "internet",
            Self::Host => "host",
            Self::Named(name) => name,
        }
    }
}

/// The options of one sandbox.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) options: DockerOptions,
    user: Option<String>,
    pub(crate) not_held: Vec<RequestField>,
}

impl Answer {
    /// What is in force with these options.
    pub(crate) fn grant(&self) -> Grant {
        let usage = &self.options.usage;
        Grant {
            network: Some(NetworkGrant::of(self.options.network.word())),
            memory_bytes: Some(usage.memory_bytes),
            cpu_millis: u32::try_from(usage.cpu_millis).ok(),
            pids: u32::try_from(usage.pids).ok(),
            disk_bytes: Some(usage.workspace_bytes),
            workspace_mode: Some(WorkspaceMode::ReadWrite),
            user: self.user.clone(),
            not_held: self.not_held.clone(),
        }
    }
}

/// Decides what a request gets, from the operator's options.
pub(crate) fn answer(
    options: &DockerOptions,
    request: &SandboxRequest,
) -> Result<Answer, RuntimeError> {
    request.check_amounts()?;
    let SandboxRequest {
        network,
        memory_bytes,
        cpu_millis,
        pids,
        disk_bytes,
        workspace_mode,
        user,
        mounts,
        plugins,
        strictness,
    } = request;
    refuse_plugins(NAME, plugins)?;
    let mut shortfall = Shortfall::new(NAME, *strictness);
    let mut options = options.clone();
    if let Some(network) = network {
        options.network = reachable(&options, network, &mut shortfall)?;
    }
    let usage = &mut options.usage;
    usage.memory_bytes = memory_bytes.unwrap_or(usage.memory_bytes);
    usage.cpu_millis = cpu_millis.map_or(usage.cpu_millis, u64::from);
    usage.pids = pids.map_or(usage.pids, u64::from);
    usage.workspace_bytes = disk_bytes.unwrap_or(usage.workspace_bytes);
    if workspace_mode.is_some_and(|mode| mode != WorkspaceMode::ReadWrite) {
        let reason = "changes go to the workspace itself";
        let remedy = "leave it out, or use the runtime `native`";
        shortfall.lacks(RequestField::WorkspaceMode, reason, remedy)?;
    }
    if let Some(user) = user {
        options.user = identity(&options, user)?;
    }
    let mounts = mounts.iter().map(|mount| volume(&options, mount));
    let mounts: Vec<VolumeRequest> = mounts.collect::<Result<_, _>>()?;
    options.volumes.extend(mounts);
    Ok(Answer {
        options,
        user: user.clone(),
        not_held: shortfall.into_fields(),
    })
}

fn reachable(
    options: &DockerOptions,
    asked: &NetworkRequest,
    shortfall: &mut Shortfall,
) -> Result<NetworkChoice, RuntimeError> {
    let NetworkRequest { mode, allow, deny } = asked;
    let reason = "it cannot filter its network";
    let remedy = "use the runtime `native`, or one of the networks `none`, `machine`, `internet` \
                  and `host`";
    let is_filtered = mode.as_deref() == Some("filtered");
    for (field, is_asked) in [
        (RequestField::Allow, allow.is_some()),
        (RequestField::Deny, !deny.is_empty()),
        (RequestField::Network, is_filtered),
    ] {
        if is_asked {
            shortfall.lacks(field, reason, remedy)?;
        }
    }
    match mode {
        // What is passed over must not open anything.
        _ if is_filtered || allow.is_some() => Ok(NetworkChoice::Nothing),
        Some(mode) => Ok(NetworkChoice::named(mode)),
        None => Ok(options.network.clone()),
    }
}

/// Root inside is root of this machine for every file that it can reach: the operator's choice.
fn identity(options: &DockerOptions, text: &str) -> Result<SandboxUser, RuntimeError> {
    let number = |text: &str| text.parse::<u32>().ok();
    let text = if text == "root" { "0:0" } else { text };
    let (uid, gid) = match text.split_once(':') {
        Some((uid, gid)) => (number(uid), number(gid)),
        None => (number(text), number(text)),
    };
    let (Some(uid), Some(gid)) = (uid, gid) else {
        let message =
            format!("`user` must be `UID` or `UID:GID` in numbers, or `root`, and is `{text}`");
        return Err(invalid(message));
    };
    let asked = SandboxUser::Numbers { uid, gid };
    if (uid == 0 || gid == 0) && options.user != asked {
        return Err(RuntimeError::Unhonoured {
            runtime: NAME,
            field: RequestField::User,
            reason: "root inside is root of this machine for every file that it can reach"
                .to_owned(),
            remedy: "ask for another user; only the operator chooses root, by `docker.user_id`"
                .to_owned(),
        });
    }
    Ok(asked)
}

/// Directories only where the operator has listed some; volumes of the Engine hold the files of
/// others.
fn volume(options: &DockerOptions, text: &str) -> Result<VolumeRequest, RuntimeError> {
    let refused = |reason: &str, remedy: &str| RuntimeError::Unhonoured {
        runtime: NAME,
        field: RequestField::Mounts,
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    if options.allowed.mounts.is_none() {
        return Err(refused(
            "no directory of this machine is listed for requests",
            "the operator lists directories by `docker.allowed_mounts`",
        ));
    }
    let read = VolumeRequest::parse_list(text).map_err(|error| invalid(error.to_string()))?;
    match <[VolumeRequest; 1]>::try_from(read) {
        Ok([volume]) if matches!(volume.source, VolumeSource::Host(_)) => Ok(volume),
        Ok(_) => Err(refused(
            "a volume of the Engine is not given away by name",
            "name a directory of `docker.allowed_mounts`",
        )),
        Err(_) => Err(invalid(format!(
            "`mounts` has `{text}`, which is not one mount"
        ))),
    }
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
