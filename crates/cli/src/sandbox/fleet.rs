//! The sandboxes of this user that can be found again.

use std::{path::PathBuf, sync::Arc};

use tokio::runtime;
use zareba_config::{RuntimeKind, Settings, nearest};
use zareba_image::ImageStore;
use zareba_runtime::{Sandbox, SandboxState, SandboxSummary};
use zareba_runtime_native::ServerLifetime;

use super::{Backend, LAST_WORK, Place, failure, place};
use crate::{
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The runtimes whose sandboxes can outlive the command that made them.
const LASTING: [RuntimeKind; 2] = [RuntimeKind::Native, RuntimeKind::Local];

/// All sandboxes of one place.
pub(crate) struct Fleet {
    backends: Vec<Backend>,
    state: PathBuf,
}

/// One of them, as it was found.
pub(crate) struct Member<'a> {
    pub(crate) summary: SandboxSummary,
    backend: &'a Backend,
    directory: PathBuf,
}

impl Fleet {
    /// Finds the place of the settings and lets `work` use what is there.
    pub(crate) fn visit(
        context: &Context,
        work: impl AsyncFnOnce(&Self) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        let configuration = context.configuration(Vec::new())?;
        let fleet = Self::open(context, &configuration.settings)?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .or_fail(Exit::Start, "cannot start")?;
        let outcome = runtime.block_on(work(&fleet));
        runtime.shutdown_timeout(LAST_WORK);
        outcome
    }

    fn open(context: &Context, settings: &Settings) -> Result<Self, Failure> {
        let place = Place::new(context, settings);
        let lifetime = ServerLifetime::KeptAlive { idle_timeout: None };
        let kinds = match context.server() {
            Some(_) => &LASTING[..1],
            None => &LASTING[..],
        };
        let backends = kinds.iter().map(|kind| place.chosen(*kind, lifetime));
        Ok(Self {
            backends: backends.collect::<Result<_, _>>()?,
            state: place.state().to_owned(),
        })
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
            let found = backend.runtime().list().await;
            let found = found.map_err(|error| {
                Failure::of(Exit::Failure, &error).while_doing("cannot list the sandboxes")
            })?;
            members.extend(found.into_iter().map(|summary| Member {
                directory: self.state.join(summary.runtime).join(summary.id.as_str()),
                summary,
                backend,
            }));
        }
        members.sort_by_key(|member| member.summary.created);
        Ok(members)
    }

    /// The one with this name.
    pub(crate) async fn find(&self, name: &str) -> Result<Member<'_>, Failure> {
        let mut members = self.members().await?;
        let position = members
            .iter()
            .position(|member| member.summary.id.as_str() == name);
        if let Some(position) = position {
            return Ok(members.swap_remove(position));
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
            removed += backend.reap().await.map_err(|error| {
                Failure::of(Exit::Failure, &error)
                    .while_doing("cannot look for what sandboxes have left")
            })?;
        }
        Ok(removed)
    }
}

impl Member<'_> {
    /// A handle to it, which may be let go of without ending it.
    pub(crate) async fn attach(&self) -> Result<Arc<dyn Sandbox>, Failure> {
        let id = &self.summary.id;
        if self.summary.state == SandboxState::Lost {
            let message = format!("the sandbox `{id}` has ended");
            return Err(Failure::new(Exit::Lost, message)
                .hint(format!("`zareba rm {id}` removes what is left of it")));
        }
        let found = self.backend.runtime().attach(id).await;
        found.map_err(|error| failure(&error))
    }

    /// Ends it, and removes what is left of it.
    pub(crate) async fn destroy(&self) -> Result<(), Failure> {
        let ended = self.backend.runtime().destroy(&self.summary.id).await;
        ended.map_err(|error| failure(&error))
    }

    /// What it says of itself, when it outlives whoever made it.
    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}
