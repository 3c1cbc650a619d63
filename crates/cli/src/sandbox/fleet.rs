//! The sandboxes of this user that can be found again.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{runtime, time::timeout};
use zareba_client::Session;
use zareba_config::{Configuration, RuntimeKind, nearest};
use zareba_image::ImageStore;
use zareba_runtime::{RuntimeError, Sandbox, SandboxId, SandboxState, SandboxSummary};
use zareba_runtime_docker::DockerRuntime;
use zareba_runtime_native::ServerLifetime;
use zareba_session::Surface;

use super::{Backend, LAST_WORK, Place, about, admitted, docker, failure, place, server_options};
use crate::{
    arguments::LifeArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// The runtimes whose sandboxes can outlive the command that made them. `docker` is one more,
/// where it was used.
const LASTING: [RuntimeKind; 2] = [RuntimeKind::Native, RuntimeKind::Local];

/// How long the Docker Engine may take to tell its sandboxes. Whoever looks for another sandbox
/// shall not wait for one that hangs.
const ENGINE_PATIENCE: Duration = Duration::from_secs(2);

/// Names that are told when several are meant.
const NAMES_TOLD_MAX: usize = 8;

/// All sandboxes of one place.
pub(crate) struct Fleet {
    backends: Vec<Backend>,
    state: PathBuf,
    surface: Surface,
    /// That the Docker Engine does not answer is said once.
    told: AtomicBool,
}

/// One of them, as it was found.
pub(crate) struct Member<'a> {
    pub(crate) summary: SandboxSummary,
    backend: &'a Backend,
    directory: PathBuf,
    /// What a server says of it.
    session: Option<Session>,
    surface: Surface,
}

impl Fleet {
    /// Finds the place of the settings and lets `work` use what is there.
    pub(crate) fn visit(
        context: &Context,
        work: impl AsyncFnOnce(&Self) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let configuration = context.configuration(Vec::new())?;
        let fleet = Self::open(context, &configuration)?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .or_fail(Exit::Start, "cannot start")?;
        let outcome = runtime.block_on(work(&fleet));
        runtime.shutdown_timeout(LAST_WORK);
        outcome
    }

    fn open(context: &Context, configuration: &Configuration) -> Result<Self, Failure> {
        let place = Place::new(context, &configuration.settings);
        let lifetime = ServerLifetime::KeptAlive { idle_timeout: None };
        let kinds = match context.server() {
            Some(_) => &LASTING[..1],
            None => &LASTING[..],
        };
        let told = || server_options(configuration, &LifeArguments::default());
        let backends = kinds.iter();
        let backends = backends.map(|kind| place.chosen(*kind, lifetime, told()));
        let mut backends: Vec<Backend> = backends.collect::<Result<_, _>>()?;
        if context.server().is_none() && docker::was_used(place.state()) {
            match place.docker(lifetime) {
                Ok(backend) => backends.push(backend),
                // The sandboxes of the others are there all the same.
                Err(failure) => say::failure(&failure),
            }
        }
        Ok(Self {
            backends,
            state: place.state().to_owned(),
            surface: context.surface,
            told: AtomicBool::new(false),
        })
    }

    /// What is known of a sandbox, where it can be found.
    pub(crate) async fn about(
        context: &Context,
        configuration: &Configuration,
        id: &SandboxId,
    ) -> Option<Value> {
        let fleet = Self::open(context, configuration).ok()?;
        let member = fleet.find(id.as_str()).await.ok()?;
        member.about()
    }

    /// The images, if there ever were any.
    pub(crate) fn image_store(&self) -> Option<Result<ImageStore, Failure>> {
        let is_there = place::images(&self.state).is_dir();
        is_there.then(|| place::image_store(&self.state))
    }

    /// Everyone, the oldest first.
    pub(crate) async fn members(&self) -> Result<Vec<Member<'_>>, Failure> {
        let mut members = Vec::new();
        for backend in &self.backends {
            let found = self.list(backend).await?;
            members.extend(found.into_iter().map(|(summary, session)| Member {
                directory: self.state.join(summary.runtime).join(summary.id.as_str()),
                summary,
                backend,
                session,
                surface: self.surface,
            }));
        }
        members.sort_by_key(|member| member.summary.created);
        Ok(members)
    }

    async fn list(&self, backend: &Backend) -> Result<Vec<Listed>, Failure> {
        let ours = match backend {
            Backend::Docker(_) if !docker::has_sandboxes(&self.state) => Vec::new(),
            Backend::Docker(runtime) => self.of_engine(runtime).await.unwrap_or_default(),
            Backend::Server(runtime) => {
                let sessions = runtime.sessions().await.map_err(|error| failure(&error))?;
                let listed = sessions.into_iter();
                let listed = listed.map(|(summary, session)| (summary, Some(session)));
                return Ok(listed.collect());
            }
            _ => backend.runtime().list().await.map_err(not_listed)?,
        };
        Ok(ours.into_iter().map(|summary| (summary, None)).collect())
    }

    /// The sandboxes of the Docker Engine, if it answers in time. Otherwise that is said, where
    /// there are any.
    async fn of_engine(&self, runtime: &DockerRuntime) -> Option<Vec<SandboxSummary>> {
        if self.told.load(Ordering::Relaxed) {
            return None;
        }
        let listed = timeout(ENGINE_PATIENCE, zareba_runtime::Runtime::list(runtime)).await;
        let reason = match listed {
            Ok(Ok(found)) => return Some(found),
            Ok(Err(error)) => Failure::of(Exit::Failure, &error),
            Err(_) => {
                let message = format!("the Docker Engine took longer than {ENGINE_PATIENCE:?}");
                Failure::new(Exit::Failure, message)
            }
        };
        if docker::has_sandboxes(&self.state) {
            let deed = "cannot list the sandboxes of the runtime `docker`";
            say::failure(&reason.while_doing(deed));
        }
        self.told.store(true, Ordering::Relaxed);
        None
    }

    /// The one with this name, or the only one whose name begins so.
    pub(crate) async fn find(&self, name: &str) -> Result<Member<'_>, Failure> {
        let mut members = self.members().await?;
        let position = members
            .iter()
            .position(|member| member.summary.id.as_str() == name);
        if let Some(position) = position {
            return Ok(members.swap_remove(position));
        }
        let begin_so: Vec<usize> = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.summary.id.as_str().starts_with(name))
            .map(|(position, _)| position)
            .collect();
        match begin_so.as_slice() {
            [position] if !name.is_empty() => return Ok(members.swap_remove(*position)),
            [_, _, ..] if !name.is_empty() => return Err(ambiguous(name, &members, &begin_so)),
            _ => {}
        }
        let names = members.iter().map(|member| member.summary.id.as_str());
        let failure = Failure::new(Exit::Lost, format!("there is no sandbox `{name}`"));
        Err(match nearest(name, names) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`zareba ps` lists those that there are"),
        })
    }

    /// Removes what is left of those that have ended. Returns how many those were.
    pub(crate) async fn reap(&self) -> Result<usize, Failure> {
        let mut removed = 0;
        for backend in &self.backends {
            if let Backend::Docker(runtime) = backend
                && self.of_engine(runtime).await.is_none()
            {
                continue;
            }
            removed += backend.reap().await.map_err(|error| {
                Failure::of(Exit::Failure, &error)
                    .while_doing("cannot look for what sandboxes have left")
            })?;
        }
        Ok(removed)
    }
}

/// A sandbox, with what a server says of it.
type Listed = (SandboxSummary, Option<Session>);

fn not_listed(error: RuntimeError) -> Failure {
    let deed = "cannot list the sandboxes";
    match &error {
        // No sandbox was to be started.
        RuntimeError::Start { source, .. } => {
            Failure::of(Exit::Start, source.as_ref()).while_doing(deed)
        }
        error => Failure::of(Exit::Failure, error).while_doing(deed),
    }
}

fn ambiguous(name: &str, members: &[Member<'_>], positions: &[usize]) -> Failure {
    let named = positions
        .iter()
        .filter_map(|position| members.get(*position));
    let mut names: Vec<&str> = named.map(|member| member.summary.id.as_str()).collect();
    let more = names.len().saturating_sub(NAMES_TOLD_MAX);
    names.truncate(NAMES_TOLD_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let names = names.join("`, `");
    let message = format!("several sandboxes begin with `{name}`: `{names}`{more}");
    Failure::new(Exit::Usage, message).hint("type more of the name")
}

impl Member<'_> {
    /// A handle to it, which may be let go of without ending it.
    pub(crate) async fn attach(&self) -> Result<Arc<dyn Sandbox>, Failure> {
        let id = &self.summary.id;
        // A container that has ended starts again.
        let can_wake = matches!(self.backend, Backend::Docker(_));
        if self.summary.state == SandboxState::Lost && !can_wake {
            let message = format!("the sandbox `{id}` has ended");
            return Err(Failure::new(Exit::Lost, message)
                .hint(format!("`zareba rm {id}` removes what is left of it")));
        }
        let found = self.backend.runtime().attach(id).await;
        let sandbox = found.map_err(|error| failure(&error))?;
        Ok(admitted(self.surface, sandbox))
    }

    /// Ends it, and removes what is left of it.
    pub(crate) async fn destroy(&self) -> Result<(), Failure> {
        let ended = self.backend.runtime().destroy(&self.summary.id).await;
        ended.map_err(|error| failure(&error))
    }

    /// Who keeps its log, when that is the Docker Engine.
    pub(crate) fn engine(&self) -> Option<&DockerRuntime> {
        match self.backend {
            Backend::Docker(runtime) => Some(runtime),
            _ => None,
        }
    }

    /// Where everything of it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it was made with, as far as the command that made it or its server says.
    pub(crate) fn about(&self) -> Option<Value> {
        match &self.session {
            Some(session) => Some(about::of_session(session)),
            None => about::read(&self.directory),
        }
    }

    /// What it says of itself, when it outlives whoever made it.
    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}
