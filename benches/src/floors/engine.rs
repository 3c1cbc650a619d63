//! A Docker Engine without us: containers made and started, and processes started in them, with
//! nothing but the requests that this takes.

use anyhow::{Context as _, bail};
use bollard::{
    API_DEFAULT_VERSION, Docker,
    exec::{CreateExecOptions, StartExecOptions, StartExecResults},
    models::{ContainerCreateBody, HostConfig},
    query_parameters::{CreateContainerOptions, RemoveContainerOptions},
};
use futures_util::StreamExt as _;
use zareba_runtime_docker::EngineAddress;

/// Seconds that the Engine may take for an answer.
const PATIENCE: u64 = 60;

/// An Engine, an image, and threads to wait on.
#[derive(Debug)]
pub(crate) struct BareEngine {
    docker: Docker,
    image: String,
    threads: tokio::runtime::Runtime,
}

impl BareEngine {
    pub(crate) fn connect(address: &EngineAddress, image: &str) -> anyhow::Result<Self> {
        let EngineAddress::Unix(socket) = address else {
            bail!("only an Engine behind a Unix socket can be measured");
        };
        let threads = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let connected = threads.block_on(async {
            let socket = socket.to_string_lossy();
            let docker = Docker::connect_with_unix(&socket, PATIENCE, API_DEFAULT_VERSION)?;
            docker.negotiate_version().await
        });
        Ok(Self {
            docker: connected.context("cannot reach the Engine")?,
            image: image.to_owned(),
            threads,
        })
    }

    /// Makes a container that waits, and starts it; without a network, as ours are.
    pub(crate) fn start(&self) -> anyhow::Result<String> {
        let body = ContainerCreateBody {
            image: Some(self.image.clone()),
            cmd: Some(vec!["sh".to_owned()]),
            open_stdin: Some(true),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        self.threads.block_on(async {
            let made = self
                .docker
                .create_container(None::<CreateContainerOptions>, body)
                .await?;
            self.docker.start_container(&made.id, None).await?;
            Ok(made.id)
        })
    }

    pub(crate) fn remove(&self, container: &str) -> anyhow::Result<()> {
        let options = RemoveContainerOptions {
            force: true,
            ..RemoveContainerOptions::default()
        };
        let removed = self.docker.remove_container(container, Some(options));
        Ok(self.threads.block_on(removed)?)
    }

    /// Starts a process in a container, and returns when it has closed its output.
    pub(crate) fn exec(&self, container: &str, program: &str) -> anyhow::Result<()> {
        self.threads.block_on(async {
            let options = CreateExecOptions {
                attach_stdout: Some(true),
                cmd: Some(vec![program.to_owned()]),
                ..CreateExecOptions::default()
            };
            let made = self.docker.create_exec(container, options).await?;
            let started = self.docker.start_exec(&made.id, None::<StartExecOptions>);
            match started.await? {
                StartExecResults::Attached { mut output, .. } => {
                    while output.next().await.transpose()?.is_some() {}
                    Ok(())
                }
                StartExecResults::Detached => bail!("the Engine gave no streams"),
            }
        })
    }
}
