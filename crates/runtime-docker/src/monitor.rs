//! Looking at sandboxes and at the Engine: logs, use, walls, and what is wrong.

use std::{pin::Pin, time::SystemTime, time::UNIX_EPOCH};

use bollard::{
    container::LogOutput, models::ContainerStatsResponse, query_parameters::LogsOptions,
};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use zareba_runtime::{RuntimeError, SandboxId};

use crate::{
    EngineError, EnginePlace, docker::Shared, ending::Condition, engine::EngineKind,
    found::look_up, groups::LimitCounters, make::cannot_start, podman, sandbox::Parts,
};

/// The oldest interface that has all that is asked for (Docker 20.10).
const API_MIN: (u32, u32) = (1, 41);

/// Which part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// What becomes of the end of it.
    pub mode: LogMode,
    /// Only what was written since then.
    pub since: Option<SystemTime>,
    /// Only so many of the last lines.
    pub tail: Option<u32>,
}

/// Whether a log is read to its present end or further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// What is there.
    Present,
    /// What is there and what comes, until the sandbox ends.
    Follow,
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPiece {
    /// Where it was written to.
    pub stream: LogStream,
    /// What was written.
    pub bytes: Bytes,
}

/// An output of the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    /// The standard output.
    Output,
    /// The standard error, where it writes what happens.
    Error,
}

/// A log while it is read; whoever reads slowly slows only the Engine's sending down.
pub type Logs = Pin<Box<dyn Stream<Item = Result<LogPiece, EngineError>> + Send>>;

/// What a sandbox uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Memory, without what only keeps files at hand.
    pub memory_bytes: u64,
    /// As much as it may use.
    pub memory_limit_bytes: u64,
    /// Time on processors since it was made, in nanoseconds.
    pub cpu_nanoseconds: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// What an Engine is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineReport {
    /// Its version.
    pub version: String,
    /// The version of its interface.
    pub api: String,
    /// The version of control groups that limit containers.
    pub cgroups: String,
    /// The runtimes that it can start containers with.
    pub runtimes: Vec<String>,
    /// What keeps sandboxes from being as they should, with what to do about it.
    pub problems: Vec<String>,
}

pub(crate) async fn logs(
    shared: &Shared,
    sandbox: &SandboxId,
    query: LogQuery,
) -> Result<Logs, RuntimeError> {
    let (record, _) = look_up(shared, sandbox).await?;
    let engine = shared.engine().await?;
    let since = query.since.and_then(|since| {
        let since = since.duration_since(UNIX_EPOCH).ok()?;
        // What is too late to be written down is later than all that was written.
        Some(i32::try_from(since.as_secs()).unwrap_or(i32::MAX))
    });
    let options = LogsOptions {
        follow: query.mode == LogMode::Follow,
        stdout: true,
        stderr: true,
        since: since.unwrap_or_default(),
        until: 0,
        timestamps: false,
        tail: query
            .tail
            .map_or_else(|| "all".to_owned(), |lines| lines.to_string()),
    };
    let deed = format!("read the log of the container `{}`", record.container);
    let pieces = engine.logs(&record.container, options);
    Ok(Box::pin(pieces.map(move |piece| match piece {
        Ok(LogOutput::StdErr { message }) => Ok(LogPiece {
            stream: LogStream::Error,
            bytes: message,
        }),
        Ok(
            LogOutput::StdOut { message }
            | LogOutput::StdIn { message }
            | LogOutput::Console { message },
        ) => Ok(LogPiece {
            stream: LogStream::Output,
            bytes: message,
        }),
        Err(error) => Err(EngineError::new(deed.clone(), error)),
    })))
}

pub(crate) async fn measure(
    shared: &Shared,
    sandbox: &SandboxId,
) -> Result<Measured, RuntimeError> {
    let (record, _) = look_up(shared, sandbox).await?;
    let engine = shared.engine().await?;
    let stats = engine.stats(&record.container).await;
    stats.map(measured).map_err(cannot_start)
}

fn measured(stats: ContainerStatsResponse) -> Measured {
    let memory = stats.memory_stats.unwrap_or_default();
    let detail = memory.stats.unwrap_or_default();
    // The name depends on the version of control groups.
    let cache = ["total_inactive_file", "inactive_file"];
    let cache = cache.iter().find_map(|name| detail.get(*name));
    let usage = memory.usage.unwrap_or_default();
    let cpu = stats.cpu_stats.and_then(|cpu| cpu.cpu_usage);
    Measured {
        memory_bytes: usage.saturating_sub(cache.copied().unwrap_or_default()),
        memory_limit_bytes: memory.limit.unwrap_or_default(),
        cpu_nanoseconds: cpu.and_then(|cpu| cpu.total_usage).unwrap_or_default(),
        pids: stats
            .pids_stats
            .and_then(|pids| pids.current)
            .unwrap_or_default(),
    }
}

/// What stands around a sandbox and what it uses.
pub(crate) async fn describe(parts: &Parts) -> Result<Value, EngineError> {
    let container = parts.engine.inspect(&parts.container).await?;
    let condition = Condition::of(Some(&container));
    let used = match condition {
        Condition::Running | Condition::Paused => {
            let used = measured(parts.engine.stats(&parts.container).await?);
            let counts = parts.counters.as_ref().map(LimitCounters::read);
            json!({
                "memory_bytes": used.memory_bytes,
                "memory_limit_bytes": used.memory_limit_bytes,
                "cpu_nanoseconds": used.cpu_nanoseconds,
                "pids": used.pids,
                "oom_kills": counts.map(|counts| counts.oom_kills),
                "pids_refused": counts.map(|counts| counts.pids_refused),
            })
        }
        Condition::New | Condition::Ended(_) => Value::Null,
    };
    let (state, ended) = match condition {
        Condition::New => ("new", None),
        Condition::Running => ("running", None),
        Condition::Paused => ("paused", None),
        Condition::Ended(reason) => ("ended", Some(reason.describe())),
    };
    let host = container.host_config.unwrap_or_default();
    let filter = host.security_opt.iter().flatten();
    let filters = filter
        .filter(|option| option.starts_with("seccomp="))
        .count();
    let mounts = container.mounts.unwrap_or_default().into_iter().map(|it| {
        json!({
            "source": it.source.or(it.name),
            "target": it.destination,
            "writable": it.rw,
        })
    });
    let digests = parts.image.as_ref().map(|image| image.digests.clone());
    Ok(json!({
        "id": parts.id.as_str(),
        "runtime": "docker",
        "state": state,
        "ended": ended,
        "container": { "id": parts.container, "name": container.name },
        "image": {
            "name": parts.record.image,
            "id": container.image,
            "digests": digests,
        },
        "walls": {
            "user": container.config.and_then(|config| config.user),
            "capabilities_dropped": host.cap_drop,
            "capabilities_added": host.cap_add,
            "no_new_privileges": host.security_opt.iter().flatten().any(|it| it == "no-new-privileges"),
            "seccomp": if filters == 1 { "ours" } else { "other" },
            "read_only_root": host.readonly_rootfs,
            "privileged": host.privileged,
            "network": host.network_mode,
            "ipc": host.ipc_mode,
            "cgroup_namespace": host.cgroupns_mode.map(|mode| mode.to_string()),
            "runtime": host.runtime,
            "reached": match parts.record.place {
                EnginePlace::ThisMachine => "by a socket",
                EnginePlace::Elsewhere => "through the Engine",
            },
        },
        "kernel": parts.held.as_ref().map_or_else(|| json!("not asked"), |held| held.describe()),
        "limits": {
            "memory_bytes": host.memory,
            "memory_and_swap_bytes": host.memory_swap,
            "nano_cpus": host.nano_cpus,
            "pids": host.pids_limit,
            "shm_bytes": host.shm_size,
        },
        "mounts": mounts.collect::<Vec<_>>(),
        "temporary": host.tmpfs,
        "not_held": parts.record.not_held,
        "relaxed": parts.record.relaxed,
        "use": used,
    }))
}

pub(crate) async fn probe(shared: &Shared) -> Result<EngineReport, RuntimeError> {
    let engine = shared.engine().await?;
    let info = engine.info().await.map_err(cannot_start)?;
    let api = engine.api_version().await.map_err(cannot_start)?;
    let mut problems = Vec::new();
    let mut require = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    let (major, minor) = API_MIN;
    require(
        version_of(&api) >= API_MIN,
        format!("its interface {api} is older than {major}.{minor}; update the Engine"),
    );
    let is_elsewhere = shared.options.place == EnginePlace::Elsewhere;
    require(
        !(engine.kind() == EngineKind::Podman && is_elsewhere),
        podman::ELSEWHERE.to_owned(),
    );
    let is = |flag: Option<bool>| flag.unwrap_or(false);
    require(is(info.memory_limit), "it cannot limit memory".to_owned());
    require(is(info.pids_limit), "it cannot limit processes".to_owned());
    require(
        is(info.cpu_cfs_quota),
        "it cannot limit the use of processors".to_owned(),
    );
    let security = info.security_options.unwrap_or_default();
    require(
        security.iter().any(|option| option.contains("seccomp")),
        "it cannot filter system calls".to_owned(),
    );
    let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
    runtimes.sort();
    if let Some(wanted) = shared.options.extra.get("runtime").and_then(Value::as_str) {
        require(
            runtimes.iter().any(|runtime| runtime == wanted),
            format!("it has no runtime `{wanted}`; install it, or name another (DK-9)"),
        );
    }
    Ok(EngineReport {
        version: info.server_version.unwrap_or_default(),
        api,
        cgroups: info
            .cgroup_version
            .map_or_else(|| "1".to_owned(), |version| version.to_string()),
        runtimes,
        problems,
    })
}

fn version_of(text: &str) -> (u32, u32) {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    let number = |text: &str| text.parse().unwrap_or_default();
    (number(major), number(minor))
}
