//! From settings to runtimes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_config::{FileScope as ScopeSetting, RuntimeKind, Settings};
use zareba_executor::{FileScope, Linting};
use zareba_image::ImageStore;
use zareba_runtime::{Runtime, RuntimeError};
use zareba_runtime_docker::{DockerRuntime, Lifetime};
use zareba_runtime_native::{
    CliRuntime, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, ServerLifetime,
};
use zareba_runtime_remote::{Farewell, ZarebaOptions, ZarebaRuntime};
use zareba_session::Surface;

use super::{
    docker::{self, Asker},
    failure,
    place::{self, state_directory},
    walls::{policy, walls},
};
use crate::{
    commands::{Context, server_client},
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Where sandboxes of this user live, and what they are made from.
pub(crate) struct Place<'a> {
    context: &'a Context,
    settings: &'a Settings,
    state: PathBuf,
}

/// One runtime.
#[derive(Clone)]
pub(crate) enum Backend {
    Cli(Arc<CliRuntime>),
    Local(Arc<LocalRuntime>),
    Native(Arc<NativeRuntime>),
    Docker(Arc<DockerRuntime>),
    Server(Arc<ZarebaRuntime>),
}

impl<'a> Place<'a> {
    /// The place that the settings name. Nothing is made yet.
    pub(crate) fn new(context: &'a Context, settings: &'a Settings) -> Self {
        Self {
            context,
            settings,
            state: state_directory(settings, &context.environment),
        }
    }

    /// Where everything is.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// Where images are.
    pub(crate) fn images(&self) -> PathBuf {
        place::images(&self.state)
    }

    /// The images.
    pub(crate) fn image_store(&self) -> Result<ImageStore, Failure> {
        place::image_store(&self.state)
    }

    /// The runtime that is asked for: of the server, if one is named, which is `told` more, or of this
    /// machine.
    pub(crate) fn chosen(
        &self,
        kind: RuntimeKind,
        lifetime: ServerLifetime,
        told: ZarebaOptions,
    ) -> Result<Backend, Failure> {
        match self.context.server() {
            Some(url) => self.of_server(url, lifetime, told),
            None => self.backend(kind, lifetime),
        }
    }

    fn of_server(
        &self,
        url: &str,
        lifetime: ServerLifetime,
        told: ZarebaOptions,
    ) -> Result<Backend, Failure> {
        let key = self.context.environment.get("ZAREBA_API_KEY");
        let client = server_client(url, key, &self.state)?;
        let client = match self.context.surface {
            Surface::Mcp => client.used_through(Surface::Mcp.as_str()),
            _ => client,
        };
        let options = ZarebaOptions {
            farewell: match lifetime {
                ServerLifetime::WithUs => Farewell::Close,
                ServerLifetime::KeptAlive { .. } => Farewell::Leave,
            },
            ..told
        };
        let runtime = ZarebaRuntime::new(client, options);
        Ok(Backend::Server(Arc::new(runtime)))
    }

    /// A runtime of this machine, if this version has it.
    pub(crate) fn backend(
        &self,
        kind: RuntimeKind,
        lifetime: ServerLifetime,
    ) -> Result<Backend, Failure> {
        self.with_warm(kind, lifetime, 0)
    }

    fn with_warm(
        &self,
        kind: RuntimeKind,
        lifetime: ServerLifetime,
        warm_servers: usize,
    ) -> Result<Backend, Failure> {
        let options = self.options();
        match kind {
            RuntimeKind::Cli => Ok(Backend::Cli(Arc::new(CliRuntime::new(options)))),
            RuntimeKind::Local => {
                let local = self.local(lifetime, warm_servers)?;
                Ok(Backend::Local(Arc::new(LocalRuntime::new(options, local))))
            }
            RuntimeKind::Native => {
                let local = self.local(lifetime, warm_servers)?;
                let walls = walls(self.settings)?;
                let rules = policy(self.settings)?;
                let runtime = NativeRuntime::new(options, local, walls).ruled_by(rules);
                Ok(Backend::Native(Arc::new(runtime)))
            }
            RuntimeKind::Docker => self.docker_to_start(lifetime, Asker::Us),
            other => Err(Failure::new(
                Exit::Start,
                format!(
                    "the runtime `{}` is not part of this version",
                    other.as_str()
                ),
            )
            .hint("use `--runtime native` or `docker`, or `cli` or `local`, which do not isolate")),
        }
    }

    /// The runtime `docker`, to look after sandboxes that are there. The Engine is not asked yet.
    pub(super) fn docker(&self, lifetime: ServerLifetime) -> Result<Backend, Failure> {
        self.docker_for(lifetime, Asker::Us).map(Backend::Docker)
    }

    /// The same with a state directory that is not ours, to look at the Engine.
    pub(crate) fn docker_in(&self, state: &Path) -> Result<Arc<DockerRuntime>, Failure> {
        self.docker_with(state, Lifetime::WithUs, Asker::Us)
    }

    /// The same to make images with, which hold our program.
    pub(crate) fn docker_for_images(&self) -> Result<Arc<DockerRuntime>, Failure> {
        self.docker_with_program(ServerLifetime::WithUs, Asker::Us)
    }

    /// The same to build images with, for which our program does not matter.
    pub(crate) fn docker_for_builds(&self) -> Result<Arc<DockerRuntime>, Failure> {
        self.docker_for(ServerLifetime::WithUs, Asker::Us)
    }

    /// The same to make sandboxes: what they need of us is looked at before anything is begun.
    fn docker_to_start(&self, lifetime: ServerLifetime, asker: Asker) -> Result<Backend, Failure> {
        let settings = self.settings;
        let runtime = self.docker_with_program(lifetime, asker)?;
        if asker == Asker::Us && settings.runtime.image.is_none() && !docker::has_image(settings) {
            let message = "the runtime `docker` needs an image, and none is named";
            return Err(Failure::new(Exit::Usage, message)
                .hint("name one by `--image NAME` or by the setting `docker.image`"));
        }
        Ok(Backend::Docker(runtime))
    }

    fn docker_with_program(
        &self,
        lifetime: ServerLifetime,
        asker: Asker,
    ) -> Result<Arc<DockerRuntime>, Failure> {
        let runtime = self.docker_for(lifetime, asker)?;
        runtime.check_program().map_err(|error| {
            failure(&error).hint(
                "name a static `zareba` by the setting `docker.program` or the variable \
                 ZAREBA_DOCKER_PROGRAM",
            )
        })?;
        Ok(runtime)
    }

    fn docker_for(
        &self,
        lifetime: ServerLifetime,
        asker: Asker,
    ) -> Result<Arc<DockerRuntime>, Failure> {
        let lifetime = match lifetime {
            ServerLifetime::WithUs => Lifetime::WithUs,
            ServerLifetime::KeptAlive { idle_timeout } => Lifetime::KeptAlive { idle_timeout },
        };
        self.docker_with(&self.state, lifetime, asker)
    }

    fn docker_with(
        &self,
        state: &Path,
        lifetime: Lifetime,
        asker: Asker,
    ) -> Result<Arc<DockerRuntime>, Failure> {
        let environment = &self.context.environment;
        let options = docker::options(self.settings, environment, state, lifetime, asker)?;
        let runtime = DockerRuntime::new(options).map_err(|error| failure(&error))?;
        Ok(Arc::new(runtime))
    }

    fn options(&self) -> NativeOptions {
        let settings = self.settings;
        let inherited = self.context.environment.iter();
        NativeOptions {
            state_dir: self.state.clone(),
            images: self.images(),
            environment: inherited
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            shell: settings.shell.program.clone(),
            scope: match settings.files.scope {
                ScopeSetting::Anywhere => FileScope::WholeFilesystem,
                ScopeSetting::Workspace => FileScope::WorkingDirectory,
            },
            linting: if settings.files.auto_lint {
                Linting::On
            } else {
                Linting::Off
            },
        }
    }

    /// The same with sandboxes that are started ahead, for whoever makes many: a command uses one.
    pub(crate) fn pooled(&self, kind: RuntimeKind) -> Result<Backend, Failure> {
        let lifetime = ServerLifetime::KeptAlive { idle_timeout: None };
        match kind {
            RuntimeKind::Docker => self.docker_to_start(lifetime, Asker::Clients),
            RuntimeKind::Native => {
                let warm = self.settings.pool.native.size;
                self.with_warm(kind, lifetime, warm.into())
            }
            _ => self.with_warm(kind, lifetime, 0),
        }
    }

    fn local(
        &self,
        lifetime: ServerLifetime,
        warm_servers: usize,
    ) -> Result<LocalOptions, Failure> {
        let program =
            std::env::current_exe().or_fail(Exit::Start, "cannot find our own program")?;
        Ok(LocalOptions {
            program,
            warm_servers,
            warm_no_change_timeout: self.settings.shell.no_change_timeout,
            lifetime,
        })
    }
}

impl Backend {
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        match self {
            Self::Cli(runtime) => &**runtime,
            Self::Local(runtime) => &**runtime,
            Self::Native(runtime) => &**runtime,
            Self::Docker(runtime) => &**runtime,
            Self::Server(runtime) => &**runtime,
        }
    }

    /// The same as a value that may be kept.
    pub(crate) fn shared(&self) -> Arc<dyn Runtime> {
        match self {
            Self::Cli(runtime) => Arc::clone(runtime) as _,
            Self::Local(runtime) => Arc::clone(runtime) as _,
            Self::Native(runtime) => Arc::clone(runtime) as _,
            Self::Docker(runtime) => Arc::clone(runtime) as _,
            Self::Server(runtime) => Arc::clone(runtime) as _,
        }
    }

    /// Starts as many sandboxes ahead as the settings ask for.
    pub(crate) async fn warm_up(&self) -> Result<(), RuntimeError> {
        match self {
            Self::Cli(_) | Self::Local(_) | Self::Server(_) => Ok(()),
            Self::Native(runtime) => runtime.warm_up().await,
            Self::Docker(runtime) => runtime.warm_up().await,
        }
    }

    /// Ends the sandboxes that are kept ready for nobody yet.
    pub(crate) async fn cool_down(&self) {
        match self {
            Self::Cli(_) | Self::Server(_) => {}
            Self::Local(runtime) => runtime.cool_down().await,
            Self::Native(runtime) => runtime.cool_down().await,
            Self::Docker(runtime) => runtime.cool_down().await,
        }
    }

    /// Removes what ended and killed sandboxes have left, and says how many those were.
    pub(crate) async fn reap(&self) -> Result<usize, RuntimeError> {
        match self {
            // One sweeps when it makes its next sandbox, and keeps none; the other for itself.
            Self::Cli(_) | Self::Server(_) => Ok(0),
            Self::Local(runtime) => runtime.reap().await,
            Self::Native(runtime) => runtime.reap().await,
            Self::Docker(runtime) => runtime.reap().await,
        }
    }
}
