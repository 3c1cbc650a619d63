//! Sandboxes that were made earlier, by us or by another process of this installation.

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bollard::models::{ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum};
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    RuntimeError, SandboxId, SandboxRequest, SandboxState, SandboxSummary, Statuses,
    directory::Claim,
    guarded::{self, guard_again},
    life,
};

use crate::{
    EngineError, EnginePlace, Lifetime, asked, delivery,
    docker::{NAME, Shared},
    door::Doorway,
    ending::Condition,
    engine::Engine,
    groups::LimitCounters,
    keep::{Charge, Fate, keep},
    kernel::Wanted,
    make::cannot_start,
    pin::Pinned,
    plan::{GUARD_REMEDY, Identity},
    record::Record,
    remains::Remains,
    request::{IMAGE_LABEL, OWNER_LABEL, SANDBOX_LABEL},
    sandbox::{DockerSandbox, Parts},
    wake::{Awake, Wake, wake},
};

/// What it was made with. A request that is not held any more was, when it was made; what is
/// configured now is the nearest that is known.
fn as_asked(shared: &Arc<Shared>, request: &SandboxRequest) -> Arc<Shared> {
    match asked::answer(&shared.options, request) {
        Ok(answer) => shared.asked(request, answer.options),
        Err(_) => Arc::clone(shared),
    }
}

/// Finds a sandbox by its name.
pub(crate) async fn find(
    shared: &Arc<Shared>,
    sandbox: SandboxId,
) -> Result<DockerSandbox, RuntimeError> {
    let (mut record, container) = look_up(shared, &sandbox).await?;
    let engine = shared.engine().await?;
    let gone = |source| RuntimeError::Disconnected {
        sandbox: sandbox.clone(),
        source,
    };
    let directory = Claim::of_another(&shared.directory, &sandbox);
    let doorway = Doorway::find(record.place, directory.path()).map_err(cannot_start)?;
    let fate = Arc::<Fate>::default();
    let condition = Condition::of(Some(&container));
    let (link, counters) = match condition {
        Condition::Running => {
            let link = doorway.open(&engine, &record.container, &record.key);
            let link = link.map_err(|error| gone(Some(Box::new(error))))?;
            let alive = link.client().alive().await;
            alive.map_err(|error| gone(Some(Box::new(error))))?;
            (link, LimitCounters::of(&container))
        }
        Condition::Paused => {
            fate.set_paused(true);
            let link = doorway.open(&engine, &record.container, &record.key);
            let link = link.map_err(|error| gone(Some(Box::new(error))))?;
            (link, LimitCounters::of(&container))
        }
        Condition::Ended(_) if record.lifetime != Lifetime::WithUs => {
            let private = directory.path();
            let again = start_again(&engine, &mut record, &container, (&doorway, private));
            let awake = again.await?;
            record.write(directory.path()).map_err(cannot_start)?;
            (awake.link, LimitCounters::of(&awake.container))
        }
        Condition::Ended(reason) => return Err(gone(Some(Box::new(reason)))),
        Condition::New => return Err(gone(None)),
    };
    let statuses = Arc::new(Statuses::new(None));
    statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
    let (life, keeper) = life::begin();
    life.outlive();
    let notice = shared.watcher(&engine).watch(&record.container);
    let happened = notice.subscribe();
    let overlays = shared.options.overlays.clone();
    let remains = Remains::find(&engine, &shared.owner, directory, overlays).await;
    tokio::spawn(keep(
        keeper,
        Charge {
            remains: remains.map_err(cannot_start)?,
            container: record.container.clone(),
            notice,
            fate: Arc::clone(&fate),
            statuses: Arc::clone(&statuses),
        },
    ));
    let parts = Parts {
        id: sandbox,
        container: record.container.clone(),
        shared: as_asked(shared, &record.request),
        record,
        image: None,
        held: None,
        link,
        engine,
        statuses,
        life,
        fate,
        happened,
        counters,
    };
    Ok(DockerSandbox::new(parts, &container))
}

/// The record and the container of a sandbox of ours.
pub(crate) async fn look_up(
    shared: &Shared,
    sandbox: &SandboxId,
) -> Result<(Record, ContainerInspectResponse), RuntimeError> {
    let missing = || RuntimeError::NotFound {
        sandbox: sandbox.clone(),
    };
    let directory = Claim::of_another(&shared.directory, sandbox);
    let record = Record::read(directory.path()).ok_or_else(missing)?;
    let engine = shared.engine().await?;
    let found = engine.find(&record.container).await.map_err(cannot_start)?;
    let container = found.ok_or_else(missing)?;
    let labels = container.config.as_ref().and_then(|it| it.labels.as_ref());
    match labels.and_then(|labels| labels.get(OWNER_LABEL)) {
        Some(owner) if *owner == shared.owner => Ok((record, container)),
        _ => Err(missing()),
    }
}

/// Wakes a container that has ended, with another key.
async fn start_again(
    engine: &Engine,
    record: &mut Record,
    container: &ContainerInspectResponse,
    (doorway, private): (&Doorway, &Path),
) -> Result<Awake, RuntimeError> {
    let private = private.to_owned();
    let guarding = move || guard_again(&private, GUARD_REMEDY);
    let guarding = tokio::task::spawn_blocking(guarding).await;
    let _until_it_is_ready = guarding.map_err(cannot_start)?.map_err(cannot_start)?;
    let user = container.config.as_ref().and_then(|it| it.user.as_deref());
    let numbers = user.and_then(|user| {
        let (uid, gid) = user.split_once(':')?;
        Some((uid.parse().ok()?, gid.parse().ok()?))
    });
    let (uid, gid) = numbers.unwrap_or_default();
    let host = container.host_config.as_ref();
    let added = host.and_then(|host| host.cap_add.as_ref());
    let pinned = host.map(Pinned::of_container).transpose();
    let pinned = pinned.map_err(cannot_start)?.unwrap_or_default();
    let user = Identity { uid, gid };
    doorway.give(user).map_err(cannot_start)?;
    let awake = wake(Wake {
        engine,
        container: &record.container,
        doorway,
        wanted: Wanted {
            uid,
            gid,
            may_have_capabilities: added.is_some_and(|added| !added.is_empty()),
        },
        pinned: &pinned,
        // It is still on those that it joined.
        networks: &[],
    })
    .await
    .map_err(cannot_start)?;
    record.key.clone_from(&awake.key);
    Ok(awake)
}

/// Stops a sandbox that is kept.
pub(crate) async fn stop(shared: &Shared, sandbox: &SandboxId) -> Result<(), RuntimeError> {
    let (record, _) = look_up(shared, sandbox).await?;
    if record.lifetime == Lifetime::WithUs {
        return Err(RuntimeError::Invalid {
            message: format!(
                "the sandbox `{sandbox}` is not kept alive, so stopping it would remove it; \
                 remove it, or pause it"
            ),
        });
    }
    let engine = shared.engine().await?;
    engine.stop(&record.container).await.map_err(cannot_start)?;
    let private = shared.directory.join(sandbox.as_str());
    let removing = tokio::task::spawn_blocking(move || guarded::remove(&private));
    removing.await.map_err(cannot_start)
}

/// Ends a sandbox, whether or not it answers, and removes what is left of it.
pub(crate) async fn destroy(shared: &Shared, sandbox: SandboxId) -> Result<(), RuntimeError> {
    let directory = Claim::of_another(&shared.directory, &sandbox);
    let has_directory = directory.path().is_dir();
    let engine = shared.engine().await?;
    let overlays = shared.options.overlays.clone();
    let remains = Remains::find(&engine, &shared.owner, directory, overlays).await;
    let remains = remains.map_err(cannot_start)?;
    if !has_directory && remains.container.is_none() {
        return Err(RuntimeError::NotFound { sandbox });
    }
    let removed = if has_directory {
        remains.remove().await
    } else {
        remains.remove_from_engine().await
    };
    removed.map_err(cannot_remove)
}

fn cannot_remove(error: EngineError) -> RuntimeError {
    RuntimeError::Internal {
        deed: "remove the sandbox",
        source: Box::new(error),
    }
}

/// The sandboxes of this installation.
pub(crate) async fn list(shared: &Shared) -> Result<Vec<SandboxSummary>, RuntimeError> {
    let engine = shared.engine().await?;
    let containers = engine.list(&shared.owner_label()).await;
    let containers = containers.map_err(cannot_start)?;
    let mut found: Vec<SandboxSummary> = containers.into_iter().filter_map(summary).collect();
    found.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(found)
}

fn summary(container: ContainerSummary) -> Option<SandboxSummary> {
    let labels: HashMap<String, String> = container.labels.unwrap_or_default();
    let state = match container.state? {
        ContainerSummaryStateEnum::RUNNING => SandboxState::Running,
        ContainerSummaryStateEnum::PAUSED => SandboxState::Paused,
        // One that is just being made is not there yet.
        ContainerSummaryStateEnum::CREATED => return None,
        _ => SandboxState::Lost,
    };
    let created = u64::try_from(container.created.unwrap_or_default()).unwrap_or_default();
    Some(SandboxSummary {
        id: SandboxId::new(labels.get(SANDBOX_LABEL)?.clone())?,
        runtime: NAME,
        state,
        image: labels.get(IMAGE_LABEL).cloned(),
        created: UNIX_EPOCH + Duration::from_secs(created),
    })
}

/// Removes what has no owner any more and is not to be kept. Returns how many.
pub(crate) async fn reap(shared: &Shared) -> Result<usize, RuntimeError> {
    let engine = shared.engine().await?;
    let removed = sweep(shared).await?;
    if shared.options.place == EnginePlace::Elsewhere {
        delivery::sweep(shared, &engine).await?;
    }
    Ok(removed + reap_without_directory(shared, &engine).await?)
}

/// The same for sandboxes that have a directory, which is all that a killed process leaves. The
/// Engine is not asked when there is none.
pub(crate) async fn sweep(shared: &Shared) -> Result<usize, RuntimeError> {
    let abandoned = Claim::abandoned(&shared.directory).map_err(cannot_start)?;
    if abandoned.is_empty() {
        return Ok(0);
    }
    let engine = shared.engine().await?;
    let mut removed = 0;
    for directory in abandoned {
        if is_wanted(&engine, &directory).await.map_err(cannot_start)? {
            continue;
        }
        tracing::debug!(sandbox = ?directory.sandbox(), "removing what a sandbox left");
        let overlays = shared.options.overlays.clone();
        let remains = Remains::find(&engine, &shared.owner, directory, overlays).await;
        let gone = remains.map_err(cannot_start)?.remove().await;
        gone.map_err(cannot_remove)?;
        removed += 1;
    }
    Ok(removed)
}

/// Containers of ours whose directory is gone, which nobody can find any more.
async fn reap_without_directory(shared: &Shared, engine: &Engine) -> Result<usize, RuntimeError> {
    let containers = engine.list(&shared.owner_label()).await;
    let mut removed = 0;
    for container in containers.map_err(cannot_start)? {
        let labels = container.labels.unwrap_or_default();
        let sandbox = labels.get(SANDBOX_LABEL).cloned().and_then(SandboxId::new);
        let Some(sandbox) = sandbox else { continue };
        if shared.directory.join(sandbox.as_str()).exists() {
            continue;
        }
        match destroy(shared, sandbox).await {
            Ok(()) => removed += 1,
            Err(RuntimeError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

/// Whether a sandbox without an owner is to go on.
async fn is_wanted(engine: &Engine, directory: &Claim) -> Result<bool, EngineError> {
    let Some(record) = Record::read(directory.path()) else {
        return Ok(false);
    };
    let Lifetime::KeptAlive { idle_timeout } = record.lifetime else {
        return Ok(false);
    };
    let Some(container) = engine.find(&record.container).await? else {
        return Ok(false);
    };
    let Some(idle_timeout) = idle_timeout else {
        return Ok(true);
    };
    if Condition::of(Some(&container)) != Condition::Running {
        return Ok(true);
    }
    let doorway = Doorway::find(record.place, directory.path());
    let link = doorway.and_then(|it| it.open(engine, &record.container, &record.key));
    let Ok(link) = link else {
        return Ok(true);
    };
    // One that does not answer may be busy, and is not ours to judge.
    let info = link.client().server_info().await;
    Ok(info.map_or(true, |info| info.idle_time < idle_timeout.as_secs_f64()))
}
