//! What is asked of the Engine: one thin function per call, with its deed in words.

use std::{collections::HashMap, future::Future, pin::Pin, time::Duration};

use bollard::{
    API_DEFAULT_VERSION, Docker,
    container::LogOutput,
    errors::Error as Reply,
    models::{
        ContainerConfig, ContainerCreateBody, ContainerInspectResponse, ContainerStatsResponse,
        ContainerSummary, EventMessage, NetworkConnectRequest, NetworkCreateRequest, SystemInfo,
        VolumeCreateRequest,
    },
    query_parameters::{
        AttachContainerOptions, CommitContainerOptions, CreateContainerOptions, CreateImageOptions,
        EventsOptions, ListContainersOptions, ListNetworksOptions, ListVolumesOptions, LogsOptions,
        RemoveContainerOptions, RemoveVolumeOptions, StatsOptions,
    },
};
use futures_core::Stream;
use futures_util::StreamExt as _;
use tokio::io::AsyncWrite;

use super::{EngineAddress, EngineError, EngineFault, ssh};

/// How long the Engine may take to begin an answer. Making a container on a busy disk takes many
/// seconds; more than this is an Engine that hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Attempts at what may be sent twice, and the longest rest between two of them.
const ATTEMPTS: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(400);

/// How long fetching an image may take.
const PULL_MAX: Duration = Duration::from_secs(30 * 60);

/// A stream of what the Engine tells.
pub(crate) type Told<T> = Pin<Box<dyn Stream<Item = Result<T, Reply>> + Send>>;

/// The streams of a container.
pub(crate) struct Attached {
    pub(crate) output: Told<LogOutput>,
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// An image that the Engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageFound {
    pub(crate) id: String,
    /// Under which digests registries have it.
    pub(crate) digests: Vec<String>,
    /// Places that the image wants to be volumes.
    pub(crate) volumes: Vec<String>,
    /// Operating system and architecture, as `linux/amd64`.
    pub(crate) platform: String,
}

/// Who answers as an Engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    Docker,
    /// It speaks like a Docker Engine, with differences that `podman` knows.
    Podman,
}

/// A connection to an Engine. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(super) docker: Docker,
    kind: EngineKind,
}

impl Engine {
    /// Says hello, so that an Engine that is not there is told of before anything else.
    pub(crate) async fn connect(address: &EngineAddress) -> Result<Self, EngineError> {
        let deed = "be asked anything";
        let seconds = DEADLINE.as_secs();
        let docker = match address {
            EngineAddress::Unix(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), seconds, API_DEFAULT_VERSION)
            }
            EngineAddress::Tcp { address, tls: None } => {
                Docker::connect_with_http(address, seconds, API_DEFAULT_VERSION)
            }
            EngineAddress::Tcp {
                address,
                tls: Some(files),
            } => Docker::connect_with_ssl(
                address,
                &files.key,
                &files.certificate,
                &files.authority,
                seconds,
                API_DEFAULT_VERSION,
            ),
            EngineAddress::Ssh(host) => ssh::connect(host, seconds),
        };
        let failed = |error| EngineError::new(deed, error);
        let docker = docker.map_err(failed)?.negotiate_version().await;
        let docker = docker.map_err(failed)?;
        let version = again(|| call("tell its version", docker.version())).await?;
        let parts = version.components.unwrap_or_default();
        let kind = if parts.iter().any(|part| part.name.contains("Podman")) {
            EngineKind::Podman
        } else {
            EngineKind::Docker
        };
        Ok(Self { docker, kind })
    }

    pub(crate) fn kind(&self) -> EngineKind {
        self.kind
    }

    pub(crate) async fn info(&self) -> Result<SystemInfo, EngineError> {
        again(|| call("tell about itself", self.docker.info())).await
    }

    /// The version of its interface, such as `1.41`.
    pub(crate) async fn api_version(&self) -> Result<String, EngineError> {
        let version = again(|| call("tell its version", self.docker.version())).await?;
        Ok(version.api_version.unwrap_or_default())
    }

    /// The kind of machine that it runs on, such as `linux/amd64`.
    pub(crate) async fn platform(&self) -> Result<String, EngineError> {
        let version = again(|| call("tell its version", self.docker.version())).await?;
        let part = |text: Option<String>, usual: &str| text.unwrap_or_else(|| usual.to_owned());
        Ok(format!(
            "{}/{}",
            part(version.os, "linux"),
            part(version.arch, "unknown")
        ))
    }

    pub(crate) async fn create(
        &self,
        name: &str,
        platform: Option<&str>,
        body: ContainerCreateBody,
    ) -> Result<String, EngineError> {
        let options = CreateContainerOptions {
            name: Some(name.to_owned()),
            platform: platform.unwrap_or_default().to_owned(),
        };
        let made = self.docker.create_container(Some(options), body);
        let made = call(format!("make the container `{name}`"), made).await?;
        for warning in made.warnings {
            tracing::warn!(container = name, %warning, "the Engine warns");
        }
        Ok(made.id)
    }

    pub(crate) async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, EngineError> {
        again(|| {
            let asked = self.docker.inspect_container(id, None);
            call(format!("inspect the container `{id}`"), asked)
        })
        .await
    }

    /// None when there is no such container.
    pub(crate) async fn find(
        &self,
        id: &str,
    ) -> Result<Option<ContainerInspectResponse>, EngineError> {
        match self.inspect(id).await {
            Err(error) if error.fault == EngineFault::Missing => Ok(None),
            found => found.map(Some),
        }
    }

    pub(crate) async fn attach(&self, id: &str) -> Result<Attached, EngineError> {
        let options = AttachContainerOptions {
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        let streams = self.docker.attach_container(id, Some(options));
        let streams = call(format!("open the streams of the container `{id}`"), streams).await?;
        Ok(Attached {
            output: streams.output,
            input: streams.input,
        })
    }

    pub(crate) async fn start(&self, id: &str) -> Result<(), EngineError> {
        let started = self.docker.start_container(id, None);
        call(format!("start the container `{id}`"), started).await
    }

    pub(crate) async fn stop(&self, id: &str) -> Result<(), EngineError> {
        let stopped = || self.docker.stop_container(id, None);
        let stopped = again(|| call(format!("stop the container `{id}`"), stopped())).await;
        accept(stopped, EngineFault::Missing)
    }

    pub(crate) async fn pause(&self, id: &str) -> Result<(), EngineError> {
        let paused = self.docker.pause_container(id);
        call(format!("pause the container `{id}`"), paused).await
    }

    pub(crate) async fn unpause(&self, id: &str) -> Result<(), EngineError> {
        let resumed = self.docker.unpause_container(id);
        call(format!("resume the container `{id}`"), resumed).await
    }

    /// Ends a container and removes it with its own volumes. One that is gone is no error.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptions {
            v: true,
            force: true,
            link: false,
        };
        let removed = again(|| {
            let removed = self.docker.remove_container(id, Some(options.clone()));
            call(format!("remove the container `{id}`"), removed)
        });
        match removed.await {
            // Somebody else removes it right now.
            Err(error) if error.fault == EngineFault::Conflict => self.await_removal(id).await,
            removed => accept(removed, EngineFault::Missing),
        }
    }

    async fn await_removal(&self, id: &str) -> Result<(), EngineError> {
        use bollard::query_parameters::WaitContainerOptions;
        let options = WaitContainerOptions {
            condition: "removed".to_owned(),
        };
        let mut waiting = self.docker.wait_container(id, Some(options));
        match tokio::time::timeout(DEADLINE, waiting.next()).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let deed = format!("remove the container `{id}`");
                Err(EngineError::new(deed, Reply::RequestTimeoutError))
            }
        }
    }

    /// All containers with a label, running or not.
    pub(crate) async fn list(&self, label: &str) -> Result<Vec<ContainerSummary>, EngineError> {
        let options = ListContainersOptions {
            all: true,
            filters: Some(labelled(label)),
            ..ListContainersOptions::default()
        };
        again(|| {
            let listed = self.docker.list_containers(Some(options.clone()));
            call("list containers", listed)
        })
        .await
    }

    /// None when the Engine does not have it.
    pub(crate) async fn image(&self, name: &str) -> Result<Option<ImageFound>, EngineError> {
        let found = again(|| {
            let asked = self.docker.inspect_image(name);
            call(format!("inspect the image `{name}`"), asked)
        });
        let found = match found.await {
            Err(error) if error.fault == EngineFault::Missing => return Ok(None),
            found => found?,
        };
        let system = found.os.unwrap_or_default();
        let architecture = found.architecture.unwrap_or_default();
        let config = found.config.unwrap_or_default();
        Ok(Some(ImageFound {
            id: found.id.unwrap_or_default(),
            digests: found.repo_digests.unwrap_or_default(),
            volumes: config.volumes.unwrap_or_default(),
            platform: format!("{system}/{architecture}"),
        }))
    }

    /// Fetches an image, and tells every step.
    pub(crate) async fn pull(
        &self,
        name: &str,
        platform: Option<&str>,
        tell: impl Fn(&str),
    ) -> Result<(), EngineError> {
        let options = CreateImageOptions {
            from_image: Some(name.to_owned()),
            platform: platform.unwrap_or_default().to_owned(),
            ..CreateImageOptions::default()
        };
        let deed = format!("fetch the image `{name}`");
        let mut steps = self.docker.create_image(Some(options), None, None);
        let all = async {
            while let Some(step) = steps.next().await {
                let step = step.map_err(|error| EngineError::new(deed.clone(), error))?;
                if let Some(status) = step.status {
                    tell(&status);
                }
            }
            Ok(())
        };
        let in_time = tokio::time::timeout(PULL_MAX, all).await;
        in_time.unwrap_or_else(|_| {
            let late = Reply::RequestTimeoutError;
            Err(EngineError::new(deed.clone(), late))
        })
    }

    /// Makes an image of a container and returns its id.
    pub(crate) async fn commit(&self, id: &str, tag: &str) -> Result<String, EngineError> {
        let options = CommitContainerOptions {
            container: Some(id.to_owned()),
            repo: Some(tag.to_owned()),
            pause: false,
            ..CommitContainerOptions::default()
        };
        let made = self
            .docker
            .commit_container(options, ContainerConfig::default());
        let made = call(format!("make the image `{tag}`"), made).await?;
        Ok(made.id)
    }

    pub(crate) async fn make_network(
        &self,
        request: NetworkCreateRequest,
    ) -> Result<(), EngineError> {
        let deed = format!("make the network `{}`", request.name);
        call(deed, self.docker.create_network(request))
            .await
            .map(drop)
    }

    pub(crate) async fn join_network(&self, network: &str, id: &str) -> Result<(), EngineError> {
        let request = NetworkConnectRequest {
            container: id.to_owned(),
            endpoint_config: None,
        };
        let joined = self.docker.connect_network(network, request);
        call(format!("join the network `{network}`"), joined).await
    }

    /// One that is gone is no error.
    pub(crate) async fn remove_network(&self, network: &str) -> Result<(), EngineError> {
        let removed = again(|| {
            let removed = self.docker.remove_network(network);
            call(format!("remove the network `{network}`"), removed)
        });
        accept(removed.await, EngineFault::Missing)
    }

    pub(crate) async fn networks(&self, label: &str) -> Result<Vec<String>, EngineError> {
        let options = ListNetworksOptions {
            filters: Some(labelled(label)),
        };
        let listed = again(|| {
            let listed = self.docker.list_networks(Some(options.clone()));
            call("list networks", listed)
        });
        let names = listed.await?.into_iter().filter_map(|network| network.name);
        Ok(names.collect())
    }

    pub(crate) async fn make_volume(
        &self,
        request: VolumeCreateRequest,
    ) -> Result<(), EngineError> {
        let name = request.name.clone().unwrap_or_default();
        let made = self.docker.create_volume(request);
        call(format!("make the volume `{name}`"), made)
            .await
            .map(drop)
    }

    /// One that is gone is no error.
    pub(crate) async fn remove_volume(&self, volume: &str) -> Result<(), EngineError> {
        let removed = again(|| {
            let options = RemoveVolumeOptions { force: false };
            let removed = self.docker.remove_volume(volume, Some(options));
            call(format!("remove the volume `{volume}`"), removed)
        });
        accept(removed.await, EngineFault::Missing)
    }

    pub(crate) async fn volumes(&self, label: &str) -> Result<Vec<String>, EngineError> {
        let options = ListVolumesOptions {
            filters: Some(labelled(label)),
        };
        let listed = again(|| {
            let listed = self.docker.list_volumes(Some(options.clone()));
            call("list volumes", listed)
        });
        let volumes = listed.await?.volumes.unwrap_or_default();
        Ok(volumes.into_iter().map(|volume| volume.name).collect())
    }

    /// What happens to containers with a label, from `since` on, in seconds of the clock.
    pub(crate) fn events(&self, label: &str, since: u64) -> Told<EventMessage> {
        let mut filters = labelled(label);
        filters.insert("type".to_owned(), vec!["container".to_owned()]);
        Box::pin(self.docker.events(Some(EventsOptions {
            since: Some(since.to_string()),
            until: None,
            filters: Some(filters),
        })))
    }

    pub(crate) fn logs(&self, id: &str, options: LogsOptions) -> Told<LogOutput> {
        Box::pin(self.docker.logs(id, Some(options)))
    }

    /// What a container uses now.
    pub(crate) async fn stats(&self, id: &str) -> Result<ContainerStatsResponse, EngineError> {
        let deed = format!("measure the container `{id}`");
        let options = StatsOptions {
            stream: false,
            one_shot: true,
        };
        let mut measured = self.docker.stats(id, Some(options));
        match tokio::time::timeout(DEADLINE, measured.next()).await {
            Ok(Some(stats)) => stats.map_err(|error| EngineError::new(deed, error)),
            Ok(None) | Err(_) => Err(EngineError::new(deed, Reply::RequestTimeoutError)),
        }
    }
}

fn labelled(label: &str) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![label.to_owned()])])
}

pub(super) async fn call<T>(
    deed: impl Into<String>,
    asked: impl Future<Output = Result<T, Reply>>,
) -> Result<T, EngineError> {
    match tokio::time::timeout(DEADLINE, asked).await {
        Ok(answer) => answer.map_err(|error| EngineError::new(deed, error)),
        Err(_) => Err(EngineError::new(deed, Reply::RequestTimeoutError)),
    }
}

/// Asks again when the Engine is away for a moment, after a rest of random length. Only for what
/// may be asked twice.
pub(super) async fn again<T, F>(mut ask: impl FnMut() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let mut rests = (1..ATTEMPTS).map(|left| REST_MAX / 2_u32.pow(ATTEMPTS - 1 - left));
    loop {
        match (ask().await, rests.next()) {
            (Err(error), Some(longest)) if may_pass(error.fault) => {
                tokio::time::sleep(longest.mul_f64(rand::random())).await;
            }
            (answer, _) => return answer,
        }
    }
}

fn may_pass(fault: EngineFault) -> bool {
    matches!(fault, EngineFault::Unreachable | EngineFault::Failed)
}

/// Takes one kind of failure for what was wanted anyway.
fn accept(outcome: Result<(), EngineError>, fault: EngineFault) -> Result<(), EngineError> {
    match outcome {
        Err(error) if error.fault == fault => Ok(()),
        outcome => outcome,
    }
}
