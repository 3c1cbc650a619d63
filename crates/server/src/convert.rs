//! From the words of the API to those of sessions, and back.

use std::{collections::BTreeMap, path::PathBuf};

use zareba_api::{self as api, KeyScope};
use zareba_eventlog::{EntryKind, Health};
use zareba_runtime::{
    Grant, Isolation, NetworkRequest, PoolCounts, RequestField, Runtime, SandboxRequest,
    Strictness, Support, WorkspaceMode,
};
use zareba_session::{
    Idle, Life, NewSession, PermittedParts, PermittedReach, Record, RequestMaxima, Secret,
    SessionInfo, SessionLimits, SessionState, SessionUpdate, Setup, event_json,
};

use crate::auth::Principal;

pub(crate) fn new_session(create: api::CreateSession, quota: &api::KeyQuota) -> NewSession {
    // Without `..`: a field that is added to the API is decided about here.
    let api::CreateSession {
        id,
        runtime,
        image,
        workspace,
        environment,
        secrets,
        labels,
        no_change_timeout,
        timeout,
        network,
        resources,
        workspace_mode,
        user,
        mounts,
        plugins,
        best_effort,
        limits,
        setup,
    } = create;
    let api::KeyQuota {
        sessions,
        actions_per_minute: _,
        memory_max: _,
        cpus_max: _,
        pids_max: _,
        disk_max: _,
        life_max,
        networks: _,
        hosts: _,
        runtimes: _,
        images: _,
        workspaces: _,
    } = quota;
    let secrets = secrets.into_iter();
    NewSession {
        id,
        name: None,
        runtime,
        image,
        workspace: workspace.map(PathBuf::from),
        environment: environment.into_iter().collect(),
        secrets: secrets
            .map(|(name, value)| (name, Secret(value.0)))
            .collect(),
        labels,
        no_change_timeout: no_change_timeout.map(api::Seconds::duration),
        timeout: timeout.map(api::Seconds::duration),
        limits: session_limits(limits),
        setup: match setup {
            api::Setup::Workspace => Setup::Workspace,
            api::Setup::Nothing => Setup::Nothing,
        },
        request: SandboxRequest {
            user,
            mounts,
            plugins,
            strictness: match best_effort {
                true => Strictness::BestEffort,
                false => Strictness::Strict,
            },
            ..walls(network, resources, workspace_mode)
        },
        maxima: maxima(quota),
        parts: parts(quota),
        reach: reach(quota),
        life_max: life_max.map(api::Seconds::duration),
        scale: None,
        quota: *sessions,
    }
}

fn session_limits(limits: api::SessionLimits) -> SessionLimits {
    let api::SessionLimits {
        idle_timeout,
        when_idle,
        life_max,
    } = limits;
    SessionLimits {
        idle_timeout: idle_timeout.map(api::Seconds::duration),
        when_idle: when_idle.map(idle_to),
        life_max: life_max.map(api::Seconds::duration),
    }
}

/// What the holder of a key may ask for at most.
pub(crate) fn maxima(quota: &api::KeyQuota) -> RequestMaxima {
    RequestMaxima {
        memory_bytes: quota.memory_max.map(|bytes| bytes.0),
        cpu_millis: quota.cpus_max.map(api::Cpus::millis),
        pids: quota.pids_max,
        disk_bytes: quota.disk_max.map(|bytes| bytes.0),
    }
}

/// What the holder of a key may make a session of.
pub(crate) fn parts(quota: &api::KeyQuota) -> PermittedParts {
    let workspaces = quota.workspaces.as_ref();
    PermittedParts {
        runtimes: quota.runtimes.clone(),
        images: quota.images.clone(),
        workspaces: workspaces.map(|paths| paths.iter().map(PathBuf::from).collect()),
    }
}

/// What the holder of a key may let a session reach.
pub(crate) fn reach(quota: &api::KeyQuota) -> PermittedReach {
    PermittedReach {
        networks: quota.networks.clone(),
        hosts: quota.hosts.clone(),
    }
}

/// What shall be different about a session.
pub(crate) fn session_update(update: api::UpdateSession, quota: &api::KeyQuota) -> SessionUpdate {
    let from_start = update.limits.life_max.map(api::Seconds::duration);
    let from_now = update.ends_in.map(api::Seconds::duration);
    SessionUpdate {
        idle_timeout: update.limits.idle_timeout.map(api::Seconds::duration),
        when_idle: update.limits.when_idle.map(idle_to),
        life: from_now
            .map(Life::FromNow)
            .or(from_start.map(Life::FromStart)),
        labels: update.labels,
        life_max: quota.life_max.map(api::Seconds::duration),
    }
}

/// What is asked of the walls.
fn walls(
    network: Option<api::Network>,
    resources: api::Resources,
    workspace_mode: Option<api::WorkspaceMode>,
) -> SandboxRequest {
    let api::Resources {
        memory,
        cpus,
        pids,
        disk,
    } = resources;
    SandboxRequest {
        network: network.map(|api::Network { mode, allow, deny }| NetworkRequest {
            mode,
            allow,
            deny,
        }),
        memory_bytes: memory.map(|bytes| bytes.0),
        cpu_millis: cpus.map(api::Cpus::millis),
        pids,
        disk_bytes: disk.map(|bytes| bytes.0),
        workspace_mode: workspace_mode.map(|mode| match mode {
            api::WorkspaceMode::ReadOnly => WorkspaceMode::ReadOnly,
            api::WorkspaceMode::CopyOnWrite => WorkspaceMode::CopyOnWrite,
            api::WorkspaceMode::ReadWrite => WorkspaceMode::ReadWrite,
        }),
        ..SandboxRequest::default()
    }
}

/// Where a part of a request stands in the body.
pub(crate) const fn pointer(field: RequestField) -> &'static str {
    match field {
        RequestField::Network => "network.mode",
        RequestField::Allow => "network.allow",
        RequestField::Deny => "network.deny",
        RequestField::Memory => "resources.memory",
        RequestField::Cpus => "resources.cpus",
        RequestField::Pids => "resources.pids",
        RequestField::Disk => "resources.disk",
        RequestField::WorkspaceMode => "workspace_mode",
        RequestField::User => "user",
        RequestField::Mounts => "mounts",
        RequestField::Plugins => "plugins",
    }
}

/// Where a limit in time stands in the body.
pub(crate) fn limit_pointer(limit: &str) -> &'static str {
    match limit {
        "idle_timeout" => "limits.idle_timeout",
        "when_idle" => "limits.when_idle",
        _ => "limits.life_max",
    }
}

pub(crate) fn session(info: SessionInfo, viewer: &Principal) -> api::Session {
    let (id, name) = match (viewer.scope, info.name) {
        (KeyScope::Session | KeyScope::Read, Some(name)) => (name, None),
        (_, name) => (info.id, name),
    };
    let Grant {
        network,
        memory_bytes,
        cpu_millis,
        pids,
        disk_bytes,
        workspace_mode,
        user,
        not_held,
    } = info.grant;
    api::Session {
        id,
        name,
        owner: info.owner.0,
        runtime: info.runtime,
        image: info.image,
        state: state(info.state),
        status: info.status.as_str().to_owned(),
        message: info.message,
        labels: info.labels,
        workspace: info.workspace,
        created: info.created,
        last_active: info.last_active,
        limits: api::SessionLimits {
            idle_timeout: info.limits.idle_timeout.map(api::Seconds::from),
            when_idle: info.limits.when_idle.map(idle_from),
            life_max: info.limits.life_max.map(api::Seconds::from),
        },
        network: network.map(|network| api::Network {
            mode: Some(network.mode),
            allow: (!network.allow.is_empty()).then_some(network.allow),
            deny: network.deny,
        }),
        resources: api::Resources {
            memory: memory_bytes.map(api::Bytes),
            cpus: cpu_millis.map(api::Cpus::of_millis),
            pids,
            disk: disk_bytes.map(api::Bytes),
        },
        workspace_mode: workspace_mode.map(|mode| match mode {
            WorkspaceMode::ReadOnly => api::WorkspaceMode::ReadOnly,
            WorkspaceMode::CopyOnWrite => api::WorkspaceMode::CopyOnWrite,
            WorkspaceMode::ReadWrite => api::WorkspaceMode::ReadWrite,
        }),
        user,
        not_held: not_held
            .iter()
            .map(|field| field.as_str().to_owned())
            .collect(),
        next_event: info.next_event,
    }
}

fn state(state: SessionState) -> api::SessionState {
    match state {
        SessionState::Starting => api::SessionState::Starting,
        SessionState::Ready => api::SessionState::Ready,
        SessionState::Paused => api::SessionState::Paused,
        SessionState::Failed => api::SessionState::Failed,
        SessionState::Lost => api::SessionState::Lost,
        SessionState::Closed => api::SessionState::Closed,
    }
}

fn idle_to(idle: api::Idle) -> Idle {
    match idle {
        api::Idle::Pause => Idle::Pause,
        api::Idle::Close => Idle::Close,
        api::Idle::Stay => Idle::Stay,
    }
}

fn idle_from(idle: Idle) -> api::Idle {
    match idle {
        Idle::Pause => api::Idle::Pause,
        Idle::Close => api::Idle::Close,
        Idle::Stay => api::Idle::Stay,
    }
}

pub(crate) fn event(record: &Record) -> api::Event {
    api::Event {
        sequence: record.sequence,
        time: record.time,
        kind: match record.kind {
            EntryKind::Action => api::EventKind::Action,
            EntryKind::Observation => api::EventKind::Observation,
            EntryKind::Status => api::EventKind::Status,
            EntryKind::Note => api::EventKind::Note,
        },
        cause: record.cause,
        payload: event_json(record),
        digest: record.digest.to_string(),
    }
}

pub(crate) fn counts(by_state: BTreeMap<SessionState, usize>) -> api::SessionCounts {
    let mut counts = api::SessionCounts::default();
    for (state, sessions) in by_state {
        *match state {
            SessionState::Starting => &mut counts.starting,
            SessionState::Ready => &mut counts.ready,
            SessionState::Paused => &mut counts.paused,
            SessionState::Failed => &mut counts.failed,
            SessionState::Lost => &mut counts.lost,
            SessionState::Closed => &mut counts.closed,
        } += sessions as u64;
    }
    counts
}

pub(crate) fn log_status(health: &Health) -> api::LogStatus {
    match health {
        Health::Durable => api::LogStatus {
            durable: true,
            reason: None,
            waiting: 0,
        },
        Health::NotDurable { reason, waiting } => api::LogStatus {
            durable: false,
            reason: Some(reason.clone()),
            waiting: *waiting as u64,
        },
    }
}

pub(crate) fn runtime(name: &str, runtime: &dyn Runtime, default: &str) -> api::RuntimeDescription {
    let can = runtime.capabilities();
    api::RuntimeDescription {
        name: name.to_owned(),
        is_default: name == default,
        isolation: match can.isolation {
            Isolation::None => api::Isolation::None,
            Isolation::Namespaces => api::Isolation::Namespaces,
            Isolation::Container => api::Isolation::Container,
            Isolation::Remote => api::Isolation::Remote,
        },
        pause: can.pause == Support::Yes,
        checkpoint: can.checkpoint == Support::Yes,
        attach: can.attach == Support::Yes,
        changes: can.changes == Support::Yes,
    }
}

pub(crate) fn pool(counts: PoolCounts) -> api::PoolStatus {
    api::PoolStatus {
        ready: counts.ready as u64,
        hits: counts.handed_out,
        misses: counts.cold,
        lost: counts.lost,
    }
}
