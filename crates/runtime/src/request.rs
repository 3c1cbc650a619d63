//! What a caller may ask of a sandbox beside its image and its workspace, and what it gets.
//!
//! Every backend takes a [`SandboxRequest`] apart without `..`: a field that is added here does not
//! compile until each of them has decided to hold it or to refuse it by
//! [`RuntimeError::Unhonoured`]. What is in force, asked for or not, is a [`Grant`].

mod network;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use network::{NetworkGrant, NetworkRequest, is_stricter};

use zareba_protocol::amounts::{
    CPU_MILLIS_MAX, CPU_MILLIS_MIN, DISK_BYTES_MIN, MEMORY_BYTES_MIN, PIDS_MIN, show_bytes,
};

use crate::RuntimeError;

/// What a caller asks of a sandbox; what is left out is as the operator's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRequest {
    /// What it can reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRequest>,
    /// The memory that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor that it may keep busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Processes and threads that it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// What its changes to files may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// How its workspace appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_mode: Option<WorkspaceMode>,
    /// Who its programs run as, as `UID` or `UID:GID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Directories of the machine beside the workspace, as `HOST:INSIDE[:MODE]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Plugins of its executor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// What becomes of what cannot be held.
    #[serde(default, skip_serializing_if = "Strictness::is_strict")]
    pub strictness: Strictness,
}

impl SandboxRequest {
    /// Checks the amounts, which are the same for every backend.
    ///
    /// # Errors
    /// Names the field that no sandbox can have.
    pub fn check_amounts(&self) -> Result<(), RuntimeError> {
        let bytes = [
            (RequestField::Memory, self.memory_bytes, MEMORY_BYTES_MIN),
            (RequestField::Disk, self.disk_bytes, DISK_BYTES_MIN),
        ];
        for (field, asked, least) in bytes {
            if asked.is_some_and(|asked| asked < least) {
                return Err(senseless(field, &format!("at least {}", show_bytes(least))));
            }
        }
        if self.pids.is_some_and(|pids| pids < PIDS_MIN) {
            return Err(senseless(
                RequestField::Pids,
                &format!("at least {PIDS_MIN}"),
            ));
        }
        let processors = CPU_MILLIS_MIN..=CPU_MILLIS_MAX;
        if self
            .cpu_millis
            .is_some_and(|millis| !processors.contains(&millis))
        {
            return Err(senseless(RequestField::Cpus, "from 0.01 to 1024"));
        }
        Ok(())
    }
}

fn senseless(field: RequestField, bounds: &str) -> RuntimeError {
    RuntimeError::Invalid {
        message: format!("`{field}` must be {bounds}"),
    }
}

/// How a workspace appears, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// There are no changes.
    ReadOnly,
    /// Changes go to a layer of the sandbox's own.
    CopyOnWrite,
    /// Changes go to the directory itself.
    ReadWrite,
}

impl WorkspaceMode {
    /// The word for it in settings, flags and requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::CopyOnWrite => "copy-on-write",
            Self::ReadWrite => "read-write",
        }
    }
}

/// What becomes of a part of a request that cannot be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    /// There is no sandbox.
    #[default]
    Strict,
    /// The sandbox goes without it, and names it in [`Grant::not_held`].
    BestEffort,
}

impl Strictness {
    const fn is_strict(&self) -> bool {
        matches!(self, Self::Strict)
    }
}

/// A part of a request, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestField {
    /// What can be reached.
    Network,
    /// What a filtered network lets through.
    Allow,
    /// What it lets through in no case.
    Deny,
    /// Memory.
    Memory,
    /// Processors.
    Cpus,
    /// Processes and threads.
    Pids,
    /// Changes to files.
    Disk,
    /// How the workspace appears.
    WorkspaceMode,
    /// Who programs run as.
    User,
    /// Directories of the machine.
    Mounts,
    /// Plugins.
    Plugins,
}

impl RequestField {
    /// Every field.
    pub const ALL: [Self; 11] = [
        Self::Network,
        Self::Allow,
        Self::Deny,
        Self::Memory,
        Self::Cpus,
        Self::Pids,
        Self::Disk,
        Self::WorkspaceMode,
        Self::User,
        Self::Mounts,
        Self::Plugins,
    ];

    /// The field of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == word)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Memory => "memory",
            Self::Cpus => "cpus",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::WorkspaceMode => "workspace_mode",
            Self::User => "user",
            Self::Mounts => "mounts",
            Self::Plugins => "plugins",
        }
    }
}

impl fmt::Display for RequestField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What is in force in a sandbox; `None` where the backend sets no bound, or cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it can reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkGrant>,
    /// The memory that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor that it may keep busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Processes and threads that it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// What its changes to files may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// How its workspace appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_mode: Option<WorkspaceMode>,
    /// Who its programs run as, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What was asked for and does not hold; only with [`Strictness::BestEffort`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<RequestField>,
}

/// What a backend cannot hold of a request: refused, or passed over and named.
#[derive(Debug)]
pub struct Shortfall {
    runtime: &'static str,
    strictness: Strictness,
    not_held: Vec<RequestField>,
}

impl Shortfall {
    /// None yet.
    pub const fn new(runtime: &'static str, strictness: Strictness) -> Self {
        Self {
            runtime,
            strictness,
            not_held: Vec::new(),
        }
    }

    /// Takes note of a field that was asked for and cannot be held.
    ///
    /// # Errors
    /// When the request is strict.
    pub fn lacks(
        &mut self,
        field: RequestField,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Result<(), RuntimeError> {
        if self.strictness == Strictness::BestEffort {
            self.not_held.push(field);
            return Ok(());
        }
        Err(RuntimeError::Unhonoured {
            runtime: self.runtime,
            field,
            reason: reason.into(),
            remedy: remedy.into(),
        })
    }

    /// The fields that do not hold.
    pub fn into_fields(self) -> Vec<RequestField> {
        self.not_held
    }
}

/// Refuses plugins, which no backend has yet. To go on without them is never meant.
///
/// # Errors
/// When there are any.
pub fn refuse_plugins(runtime: &'static str, plugins: &[String]) -> Result<(), RuntimeError> {
    if plugins.is_empty() {
        return Ok(());
    }
    Err(RuntimeError::Unhonoured {
        runtime,
        field: RequestField::Plugins,
        reason: "plugins are not in this version".to_owned(),
        remedy: "leave `plugins` out".to_owned(),
    })
}

/// What a backend without walls answers: it runs programs as this user, on the network and in the
/// files of this machine, and holds nothing else.
///
/// # Errors
/// Names the first field that such a backend cannot hold, unless the request is best effort.
pub fn grant_without_walls(
    runtime: &'static str,
    request: &SandboxRequest,
) -> Result<Grant, RuntimeError> {
    let mut request = request.clone();
    request
        .workspace_mode
        .take_if(|mode| *mode == WorkspaceMode::ReadWrite);
    if let Some(network) = &mut request.network {
        network.mode.take_if(|mode| mode == "host");
    }
    let reason = format!("the runtime `{runtime}` has no walls");
    Ok(Grant {
        network: Some(NetworkGrant::of("host")),
        workspace_mode: Some(WorkspaceMode::ReadWrite),
        not_held: hold_nothing(runtime, &request, &reason)?,
        ..Grant::default()
    })
}

/// What a backend answers that can hold no part of a request. Returns what was asked for.
///
/// # Errors
/// Names the first field that was asked for, unless the request is best effort.
pub fn hold_nothing(
    runtime: &'static str,
    request: &SandboxRequest,
    reason: &str,
) -> Result<Vec<RequestField>, RuntimeError> {
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
    refuse_plugins(runtime, plugins)?;
    let mut shortfall = Shortfall::new(runtime, *strictness);
    let (mode, allow, deny) = network.as_ref().map_or((false, false, false), |network| {
        let NetworkRequest { mode, allow, deny } = network;
        (mode.is_some(), allow.is_some(), !deny.is_empty())
    });
    for (field, is_asked) in [
        (RequestField::Network, mode),
        (RequestField::Allow, allow),
        (RequestField::Deny, deny),
        (RequestField::Memory, memory_bytes.is_some()),
        (RequestField::Cpus, cpu_millis.is_some()),
        (RequestField::Pids, pids.is_some()),
        (RequestField::Disk, disk_bytes.is_some()),
        (RequestField::WorkspaceMode, workspace_mode.is_some()),
        (RequestField::User, user.is_some()),
        (RequestField::Mounts, !mounts.is_empty()),
    ] {
        if is_asked {
            shortfall.lacks(field, reason, "use the runtime `native`, or leave it out")?;
        }
    }
    Ok(shortfall.into_fields())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request for each field, as different from what a backend without walls does as can be.
    fn requests() -> Vec<(RequestField, SandboxRequest)> {
        let network = |network| SandboxRequest {
            network: Some(network),
            ..SandboxRequest::default()
        };
        let usual = SandboxRequest::default;
        let each = |field| match field {
            RequestField::Network => network(NetworkRequest {
                mode: Some("none".to_owned()),
                ..NetworkRequest::default()
            }),
            RequestField::Allow => network(NetworkRequest {
                allow: Some(vec!["a.example".to_owned()]),
                ..NetworkRequest::default()
            }),
            RequestField::Deny => network(NetworkRequest {
                deny: vec!["a.example".to_owned()],
                ..NetworkRequest::default()
            }),
            RequestField::Memory => SandboxRequest {
                memory_bytes: Some(1 << 30),
                ..usual()
            },
            RequestField::Cpus => SandboxRequest {
                cpu_millis: Some(500),
                ..usual()
            },
            RequestField::Pids => SandboxRequest {
                pids: Some(64),
                ..usual()
            },
            RequestField::Disk => SandboxRequest {
                disk_bytes: Some(1 << 30),
                ..usual()
            },
            RequestField::WorkspaceMode => SandboxRequest {
                workspace_mode: Some(WorkspaceMode::CopyOnWrite),
                ..usual()
            },
            RequestField::User => SandboxRequest {
                user: Some("1000".to_owned()),
                ..usual()
            },
            RequestField::Mounts => SandboxRequest {
                mounts: vec!["/a:/a".to_owned()],
                ..usual()
            },
            RequestField::Plugins => SandboxRequest {
                plugins: vec!["a".to_owned()],
                ..usual()
            },
        };
        RequestField::ALL.map(|field| (field, each(field))).into()
    }

    #[test]
    fn without_walls_every_field_is_refused_by_its_name() {
        for (field, request) in requests() {
            let refused = grant_without_walls("local", &request).unwrap_err();
            let RuntimeError::Unhonoured { field: named, .. } = refused else {
                panic!("{refused}");
            };
            assert_eq!(named, field);
        }
    }

    #[test]
    fn with_best_effort_what_is_not_held_is_named_and_plugins_are_refused_all_the_same() {
        for (field, request) in requests() {
            let request = SandboxRequest {
                strictness: Strictness::BestEffort,
                ..request
            };
            let granted = grant_without_walls("local", &request);
            if field == RequestField::Plugins {
                granted.unwrap_err();
                continue;
            }
            assert_eq!(granted.unwrap().not_held, [field]);
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written_and_an_empty_one_says_nothing() {
        let empty = serde_json::to_value(SandboxRequest::default()).unwrap();
        assert_eq!(empty, serde_json::json!({}));
        for (_, request) in requests() {
            let written = serde_json::to_value(&request).unwrap();
            assert_eq!(
                serde_json::from_value::<SandboxRequest>(written).unwrap(),
                request
            );
        }
    }
}
