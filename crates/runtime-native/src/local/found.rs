//! Executors that were started earlier, by us or by another process of this user.

use std::{path::Path, sync::Arc};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{RuntimeError, SandboxId, SandboxState, SandboxSummary, Statuses, life};

use super::launch::{Fate, cannot_start, keep, link_to};
use crate::{
    directory::RunDirectory,
    link::Link,
    native::{self, Enclosure},
    process::ServerProcess,
    record::{Record, RecordedLifetime},
    sandbox::Parts,
    server::Server,
};

/// Finds a running executor by its sandbox's name.
pub(super) async fn find(
    kind: &Path,
    sandbox: SandboxId,
    runtime: &'static str,
) -> Result<Parts, RuntimeError> {
    let missing = || RuntimeError::NotFound {
        sandbox: sandbox.clone(),
    };
    let directory = RunDirectory::of_another(kind, &sandbox);
    let record = Record::read(directory.path()).ok_or_else(missing)?;
    let process = ServerProcess::find(&record.process).ok_or_else(missing)?;
    let link = link_to(&record.socket, &record.key)?;
    let enclosure = Enclosure::found(runtime, directory.path());
    let paused = enclosure.as_ref().is_some_and(|it| it.is_paused());
    if let Link::Request(client) = &link
        && !paused
    {
        let alive = client.alive().await;
        alive.map_err(|error| RuntimeError::Disconnected {
            sandbox: sandbox.clone(),
            source: Some(Box::new(error)),
        })?;
    }
    let statuses = Arc::new(Statuses::new(None));
    statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
    let (life, keeper) = life::begin();
    life.outlive();
    let fate = Fate::told_to(&statuses);
    tokio::spawn(keep(keeper, directory, Server::found(process), fate));
    Ok(Parts {
        id: sandbox,
        runtime,
        workspace: record.workspace,
        timeout: record.timeout,
        not_held: record.not_held,
        statuses,
        link,
        life,
        enclosure,
    })
}

/// Ends an executor, whether or not it answers, and removes what is left of it.
pub(super) async fn destroy(kind: &Path, sandbox: SandboxId) -> Result<(), RuntimeError> {
    let directory = RunDirectory::of_another(kind, &sandbox);
    if !directory.path().is_dir() {
        return Err(RuntimeError::NotFound { sandbox });
    }
    let record = Record::read(directory.path());
    let process = record.and_then(|record| ServerProcess::find(&record.process));
    if let Some(process) = process {
        Server::found(process).end().await;
    }
    directory.remove().await;
    Ok(())
}

/// The executors that are there, and what is left of those that are not.
pub(super) fn list(
    kind: &Path,
    runtime: &'static str,
) -> Result<Vec<SandboxSummary>, RuntimeError> {
    let mut found = Vec::new();
    for (sandbox, path) in RunDirectory::all(kind).map_err(cannot_start)? {
        // One that is just being made has no record yet, and is not there yet.
        let Some(record) = Record::read(&path) else {
            continue;
        };
        let paused = || Enclosure::of(runtime, &path).is_some_and(|it| it.is_paused());
        let state = match ServerProcess::find(&record.process) {
            None => SandboxState::Lost,
            Some(_) if paused() => SandboxState::Paused,
            Some(_) => SandboxState::Running,
        };
        found.push(SandboxSummary {
            id: sandbox,
            runtime,
            state,
            image: record.image,
            created: record.created,
        });
    }
    found.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(found)
}

/// Ends executors whose owner is gone and that are not to be kept, and removes what they, and
/// those that ended by themselves, have left. Returns how many were removed.
pub(super) async fn reap(kind: &Path) -> Result<usize, RuntimeError> {
    let mut removed = 0;
    for directory in RunDirectory::abandoned(kind).map_err(cannot_start)? {
        let record = Record::read(directory.path());
        let running = record.and_then(|record| {
            let process = ServerProcess::find(&record.process)?;
            Some((record, process))
        });
        if running.is_none() {
            native::end_unrecorded(directory.path());
        }
        if let Some((record, process)) = running {
            if is_wanted(&record).await {
                directory.leave();
                continue;
            }
            Server::found(process).end().await;
        }
        tracing::debug!(sandbox = ?directory.sandbox(), "removing what an executor left");
        directory.remove().await;
        removed += 1;
    }
    Ok(removed)
}

/// Whether an executor without an owner is to go on.
async fn is_wanted(record: &Record) -> bool {
    let idle_timeout = match record.lifetime {
        RecordedLifetime::WithItsOwner => return false,
        RecordedLifetime::KeptAlive { idle_timeout: None } => return true,
        RecordedLifetime::KeptAlive {
            idle_timeout: Some(idle_timeout),
        } => idle_timeout,
    };
    let Ok(Link::Request(client)) = link_to(&record.socket, &record.key) else {
        return true;
    };
    // One that does not answer may be busy, and is not ours to judge.
    let info = client.server_info().await;
    info.map_or(true, |info| info.idle_time < idle_timeout.as_secs_f64())
}
