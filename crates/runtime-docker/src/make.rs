//! Making a sandbox, from what was asked for to an executor that is ready.
//!
//! It runs in a task of its own: a request that the Engine has got cannot be taken back, so a
//! caller who goes away half-way lets the task finish and then remove what it made.

use std::{
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use bollard::models::{NetworkCreateRequest, VolumeCreateRequest};
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    RequestField, RuntimeError, SandboxId, SandboxSpec, Statuses,
    directory::{Claim, DirectoryError},
    guarded::Guarded,
    life,
};

use crate::{
    EngineError, EngineFault, EnginePlace, Lifetime, NetworkChoice, Reach, RootMode, apt,
    delivery::{Delivered, deliver},
    directory::PORTS,
    docker::{NAME, Shared},
    door::Doorway,
    engine::{Engine, EngineKind, ImageFound},
    groups::LimitCounters,
    image,
    keep::{Charge, Fate, keep},
    kernel::Wanted,
    plan::{MountedSource, Plan, container_name, invalid, own_network},
    podman,
    ports::{self, PortError},
    program::StaticProgram,
    readback::{self, Mismatch},
    record::Record,
    remains::Remains,
    request::{OWNER_LABEL, Order, Program, RequestError, SANDBOX_LABEL, request},
    sandbox::{DockerSandbox, Parts},
    wake::{Awake, START_MAX, Wake, WakeError, wake},
};

/// Attempts with other ports, when one was taken meanwhile.
const PORT_ATTEMPTS: usize = 5;

/// What a sandbox is made with.
struct Making<'a> {
    shared: &'a Shared,
    plan: &'a Plan,
    program: &'a StaticProgram,
    image: &'a ImageFound,
    doorway: &'a Doorway,
    /// The program, when the Engine does not see ours.
    sent: Option<&'a Delivered>,
    statuses: &'a Statuses,
    /// Volumes that hold its overlays.
    overlays: Vec<String>,
}

/// What was made.
struct Made {
    plan: Plan,
    image: ImageFound,
    remains: Remains,
    awake: Awake,
    container: String,
    not_held: Vec<RequestField>,
}

/// Why nothing came of an attempt.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Wake(#[from] WakeError),
    #[error(transparent)]
    Ports(#[from] PortError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error("cannot keep the filter of system calls in a file for Podman")]
    Filter(#[from] std::io::Error),
    #[error("cannot settle apt for a root without capabilities")]
    Apt(#[from] RuntimeError),
}

impl From<EngineError> for AttemptError {
    fn from(error: EngineError) -> Self {
        Self::Wake(error.into())
    }
}

impl AttemptError {
    fn is_taken_port(&self) -> bool {
        let Self::Wake(WakeError::Engine(error)) = self else {
            return false;
        };
        error.fault == EngineFault::PortTaken
    }
}

/// Makes a sandbox that goes with its handle, and with this process. One that is to go on is kept
/// by the caller that gets the handle ([`DockerSandbox::become_kept`]).
pub(crate) async fn make(
    shared: Arc<Shared>,
    spec: SandboxSpec,
    statuses: Arc<Statuses>,
    not_held: Vec<RequestField>,
) -> Result<DockerSandbox, RuntimeError> {
    let id = match spec.id.clone() {
        Some(id) => id,
        None => new_id()?,
    };
    let options = &shared.options;
    let plan = Plan::new(options, &spec, id.clone())?;
    statuses.change(RuntimeStatus::StartingRuntime, "Starting runtime...");
    let program = StaticProgram::check(&options.program).map_err(cannot_start)?;
    let engine = shared.engine().await?;
    if engine.kind() == EngineKind::Podman && options.place == EnginePlace::Elsewhere {
        return Err(invalid(podman::ELSEWHERE));
    }
    let tell = |step: &str| statuses.change(RuntimeStatus::BuildingRuntime, step);
    let image = image::find(&engine, options, &program, &plan.image, tell).await?;
    let mut remains = Remains {
        engine,
        directory: make_directory(&shared, &id)?,
        container: None,
        network: None,
        volumes: Vec::new(),
        overlays: None,
    };
    let private = remains.directory.path().to_owned();
    let made = match guard_workspace(&shared, plan, private).await {
        Ok((plan, _until_it_is_ready)) => {
            let up = bring_up(&shared, &plan, &program, &image, &statuses, &mut remains).await;
            up.map(|(awake, container)| (plan, awake, container))
        }
        Err(error) => Err(error),
    };
    match made {
        Ok((plan, awake, container)) => own(
            &shared,
            &spec,
            statuses,
            Made {
                plan,
                image,
                remains,
                awake,
                container,
                not_held,
            },
        ),
        Err(error) => {
            if let Err(error) = remains.remove().await {
                tracing::warn!(%error, "what was made of a sandbox is left to the next sweep");
            }
            Err(error)
        }
    }
}

/// Hands the sandbox over to a task that owns it.
fn own(
    shared: &Arc<Shared>,
    spec: &SandboxSpec,
    statuses: Arc<Statuses>,
    made: Made,
) -> Result<DockerSandbox, RuntimeError> {
    let options = &shared.options;
    let record = Record {
        container: made.container.clone(),
        key: made.awake.key,
        workspace: options.workspace_path.clone(),
        timeout: spec.timeout,
        lifetime: Lifetime::WithUs,
        image: made.plan.image,
        created: SystemTime::now(),
        request: spec.request.clone(),
        not_held: made.not_held,
        relaxed: [made.plan.relaxed, made.awake.loose].concat(),
        place: options.place,
    };
    let written = record.write(made.remains.directory.path());
    let engine = made.remains.engine.clone();
    let notice = shared.watcher(&engine).watch(&made.container);
    let happened = notice.subscribe();
    let fate = Arc::<Fate>::default();
    let (life, keeper) = life::begin();
    tokio::spawn(keep(
        keeper,
        Charge {
            remains: made.remains,
            container: made.container.clone(),
            notice,
            fate: Arc::clone(&fate),
            statuses: Arc::clone(&statuses),
        },
    ));
    // Without a record nobody could find it: dropping the life closes it.
    written.map_err(cannot_start)?;
    statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
    let parts = Parts {
        id: made.plan.id,
        container: made.container,
        record,
        image: Some(made.image),
        held: made.awake.held,
        link: made.awake.link,
        shared: Arc::clone(shared),
        engine,
        statuses,
        life,
        fate,
        happened,
        counters: LimitCounters::of(&made.awake.container),
    };
    Ok(DockerSandbox::new(parts, &made.awake.container))
}

/// Guards names in the workspace, on a thread that may wait for its lock.
async fn guard_workspace(
    shared: &Arc<Shared>,
    mut plan: Plan,
    private: PathBuf,
) -> Result<(Plan, Option<Guarded>), RuntimeError> {
    let shared = Arc::clone(shared);
    let guarding = tokio::task::spawn_blocking(move || {
        let guarded = plan.guard_workspace(&shared.options, &private);
        guarded.map(|guarded| (plan, guarded))
    });
    guarding
        .await
        .map_err(cannot_start)?
        .map_err(|error| invalid(error.to_string()))
}

async fn bring_up(
    shared: &Shared,
    plan: &Plan,
    program: &StaticProgram,
    image: &ImageFound,
    statuses: &Statuses,
    remains: &mut Remains,
) -> Result<(Awake, String), RuntimeError> {
    let directory = remains.directory.path().to_owned();
    let place = shared.options.place;
    let doorway = Doorway::make(place, &directory, plan.user).map_err(cannot_start)?;
    let sent = match place {
        EnginePlace::ThisMachine => None,
        EnginePlace::Elsewhere => {
            let sent = deliver(shared, &remains.engine, program, &image.id).await?;
            Some(sent)
        }
    };
    let mut making = Making {
        shared,
        plan,
        program,
        image,
        doorway: &doorway,
        sent: sent.as_ref(),
        statuses,
        overlays: Vec::new(),
    };
    making.make_network(remains).await?;
    making.make_overlays(remains).await?;
    let may_repeat = ports::can_choose_again(&shared.options.ports);
    for attempt in 1.. {
        let error = match making.attempt(remains).await {
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        if !(may_repeat && error.is_taken_port() && attempt < PORT_ATTEMPTS) {
            return Err(making.explain(error));
        }
        tracing::debug!("a port was taken meanwhile");
        if let Some(container) = remains.container.take() {
            let removed = remains.engine.remove(&container).await;
            removed.map_err(cannot_start)?;
        }
    }
    Err(invalid("no attempt was made"))
}

impl Making<'_> {
    /// The sandbox's own bridge.
    async fn make_network(&self, remains: &mut Remains) -> Result<(), RuntimeError> {
        let NetworkChoice::Own(reach) = self.shared.options.network else {
            return Ok(());
        };
        let name = own_network(&self.plan.id);
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some("bridge".to_owned()),
            internal: Some(reach == Reach::Inside),
            labels: Some(self.labels()),
            ..NetworkCreateRequest::default()
        };
        remains.network = Some(name);
        let made = remains.engine.make_network(request).await;
        made.map_err(cannot_start)
    }

    /// A volume for each directory of which a copy can be changed.
    async fn make_overlays(&mut self, remains: &mut Remains) -> Result<(), RuntimeError> {
        let Some(overlays) = &self.shared.options.overlays else {
            return Ok(());
        };
        let place = overlays.join(self.plan.id.as_str());
        for (number, volume) in self.plan.volumes.iter().enumerate() {
            let MountedSource::Overlay { lower } = &volume.source else {
                continue;
            };
            remains.overlays = Some(place.clone());
            let place = place.join(number.to_string());
            let o = overlay_options(lower, &place).map_err(cannot_start)?;
            let name = format!("zareba-{}-{number}", self.plan.id);
            let pairs = [("type", "overlay"), ("device", "overlay"), ("o", &o)];
            let request = VolumeCreateRequest {
                name: Some(name.clone()),
                driver: Some("local".to_owned()),
                driver_opts: Some(
                    pairs
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value.to_owned()))
                        .collect(),
                ),
                labels: Some(self.labels()),
                ..VolumeCreateRequest::default()
            };
            remains.volumes.push(name.clone());
            let made = remains.engine.make_volume(request).await;
            made.map_err(cannot_start)?;
            self.overlays.push(name);
        }
        Ok(())
    }

    fn labels(&self) -> std::collections::HashMap<String, String> {
        let pairs = [
            (OWNER_LABEL, self.shared.owner.as_str()),
            (SANDBOX_LABEL, self.plan.id.as_str()),
        ];
        let pairs = pairs.into_iter();
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Makes the container, sees that it is what was asked for, and wakes it.
    async fn attempt(&self, remains: &mut Remains) -> Result<(Awake, String), AttemptError> {
        let options = &self.shared.options;
        let locks = self.shared.directory.join(PORTS);
        let reserved = ports::reserve(&options.ports, options.bind_address, &locks)?;
        let file = self.program.path.to_string_lossy();
        let door = self.doorway.shared().unwrap_or(Path::new(""));
        let door = door.to_string_lossy();
        let program = match self.sent {
            Some(sent) => Program::Sent {
                volume: &sent.volume,
            },
            None => Program::Here {
                file: &file,
                door: &door,
            },
        };
        let mut body = request(&Order {
            options,
            plan: self.plan,
            image: self.image,
            program,
            ports: &reserved,
            overlays: &self.overlays,
            owner: &self.shared.owner,
        })?;
        let kind = remains.engine.kind();
        if kind == EngineKind::Podman {
            podman::adapt(&mut body, &self.shared.directory)?;
        }
        let id = self.create(&remains.engine, body.clone()).await?;
        remains.container = Some(id.clone());
        let seen = remains.engine.inspect(&id).await?;
        readback::compare(&body, &self.image.id, &seen, kind)?;
        if self.plan.user.uid == 0 && options.relaxed.root == RootMode::Writable {
            apt::settle(&remains.engine, &id).await?;
        }
        let status = RuntimeStatus::RuntimeStarted;
        self.statuses.change(status, "Runtime started.");
        let awake = wake(Wake {
            engine: &remains.engine,
            container: &id,
            doorway: self.doorway,
            wanted: Wanted {
                uid: self.plan.user.uid,
                gid: self.plan.user.gid,
                may_have_capabilities: !options.relaxed.capabilities.is_empty(),
            },
            pinned: &self.plan.pinned,
            networks: &options.additional_networks,
        })
        .await?;
        Ok((awake, id))
    }

    /// A name that is taken by what we left earlier is freed; nobody else's is (DK-6).
    async fn create(
        &self,
        engine: &Engine,
        body: bollard::models::ContainerCreateBody,
    ) -> Result<String, EngineError> {
        let name = container_name(&self.plan.id);
        let platform = self.shared.options.platform.as_deref();
        let error = match engine.create(&name, platform, body.clone()).await {
            Err(error) if error.fault == EngineFault::Conflict => error,
            created => return created,
        };
        let found = engine.find(&name).await?;
        let labels = found
            .and_then(|found| found.config)
            .and_then(|config| config.labels);
        // The directory of that name is ours alone, so a container of ours has no owner.
        if labels.is_some_and(|labels| labels.get(OWNER_LABEL) == Some(&self.shared.owner)) {
            engine.remove(&name).await?;
            return engine.create(&name, platform, body).await;
        }
        Err(error)
    }

    fn explain(&self, error: AttemptError) -> RuntimeError {
        let sandbox = self.plan.id.clone();
        match error {
            AttemptError::Wake(WakeError::Late) => RuntimeError::NotReady {
                sandbox,
                waited: START_MAX,
            },
            AttemptError::Wake(WakeError::Engine(error)) => self.explain_engine(error),
            AttemptError::Ports(error) => RuntimeError::Busy {
                sandbox,
                deed: "publish its ports",
                reason: error.to_string(),
            },
            AttemptError::Request(RequestError::Extra(error)) => invalid(error.to_string()),
            error => cannot_start(error),
        }
    }

    fn explain_engine(&self, error: EngineError) -> RuntimeError {
        match error.fault {
            EngineFault::PortTaken => RuntimeError::Busy {
                sandbox: self.plan.id.clone(),
                deed: "publish its ports",
                reason: error.source.to_string(),
            },
            EngineFault::Conflict => invalid(format!(
                "a container `{}` is there that is not ours; choose another name",
                container_name(&self.plan.id)
            )),
            EngineFault::Missing | EngineFault::Refused => {
                invalid(format!("{error}: {}", error.source))
            }
            _ => cannot_start(error),
        }
    }
}

fn make_directory(shared: &Shared, id: &SandboxId) -> Result<Claim, RuntimeError> {
    match Claim::create(&shared.directory, id) {
        Err(DirectoryError::Exists) => Err(invalid(format!(
            "there is a sandbox `{id}` already; remove it or choose another name"
        ))),
        made => made.map_err(cannot_start),
    }
}

/// Makes the directories of an overlay. Its root looks like the directory below it.
fn overlay_options(lower: &Path, place: &Path) -> std::io::Result<String> {
    let (upper, work) = (place.join("upper"), place.join("work"));
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(&upper)?;
    builder.create(&work)?;
    let below = std::fs::metadata(lower)?;
    std::fs::set_permissions(&upper, below.permissions())?;
    chown(&upper, Some(below.uid()), Some(below.gid()))?;
    Ok(format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    ))
}

fn new_id() -> Result<SandboxId, RuntimeError> {
    let name = format!("{NAME}-{:016x}", rand::random::<u64>());
    SandboxId::new(name).ok_or_else(|| invalid("no name could be made for the sandbox"))
}

pub(crate) fn cannot_start(error: impl std::error::Error + Send + Sync + 'static) -> RuntimeError {
    RuntimeError::Start {
        runtime: NAME,
        source: Box::new(error),
    }
}
