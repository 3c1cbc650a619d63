//! A sandbox of either runtime, as callers see it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use zareba_protocol::{
    Action, ActionEvent, ErrorClass, Observation, ObservationEvent, ObservationKind, RunCommand,
    RuntimeStatus,
};
use zareba_runtime::{Forwarded, RuntimeError, Sandbox, SandboxId, Statuses, Variables};
use zareba_wire::{BoxFuture, client::ClientError};

use crate::{
    VariableStore, copy,
    life::Life,
    link::{Link, LinkError},
    queues::Queues,
};

/// What a sandbox is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: SandboxId,
    pub(crate) runtime: &'static str,
    pub(crate) workspace: PathBuf,
    pub(crate) timeout: Duration,
    pub(crate) variables: VariableStore,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) link: Link,
    pub(crate) life: Life,
}

/// A running place without walls.
#[derive(Debug)]
pub(crate) struct NativeSandbox {
    parts: Parts,
    queues: Queues,
}

impl NativeSandbox {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            queues: Queues::default(),
        }
    }

    async fn run(&self, action: ActionEvent) -> Result<ObservationEvent, RuntimeError> {
        let turn = self.queues.turn(&action).await;
        // Said here and not left to the executor, so that its client waits as long as it.
        let action = match action.hard_timeout() {
            Some(_) => action,
            None => action.with_timeout(self.parts.timeout.as_secs_f64()),
        };
        let link = self.parts.link.clone();
        self.inside("run the action", async move {
            let _turn = turn;
            link.execute(action).await
        })
        .await
    }

    /// Asks the executor for something, in a task that ends when the sandbox is closed.
    async fn inside<T: Send + 'static>(
        &self,
        deed: &'static str,
        work: impl Future<Output = Result<T, LinkError>> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.require_running()?;
        match self.parts.life.run(work).await {
            Ok(result) => result.map_err(|error| self.explain(deed, error)),
            Err(_) => Err(self.closed()),
        }
    }

    async fn transfer(
        &self,
        work: impl Future<Output = Result<(), RuntimeError>> + Send + 'static,
    ) -> Result<(), RuntimeError> {
        self.require_running()?;
        match self.parts.life.run(work).await {
            Ok(result) => result,
            Err(_) => Err(self.closed()),
        }
    }

    fn require_running(&self) -> Result<(), RuntimeError> {
        match self.parts.statuses.current() {
            RuntimeStatus::Stopped => Err(self.closed()),
            RuntimeStatus::RuntimeDisconnected => Err(RuntimeError::Disconnected {
                sandbox: self.parts.id.clone(),
                source: None,
            }),
            _ => Ok(()),
        }
    }

    fn closed(&self) -> RuntimeError {
        RuntimeError::Closed {
            sandbox: self.parts.id.clone(),
        }
    }

    fn explain(&self, deed: &'static str, error: LinkError) -> RuntimeError {
        let sandbox = self.parts.id.clone();
        match error {
            LinkError::Ended => RuntimeError::Closed { sandbox },
            LinkError::Request(ClientError::Timeout { waited }) => RuntimeError::Timeout { waited },
            LinkError::Request(ClientError::InvalidRequest { problem }) => {
                RuntimeError::Invalid { message: problem }
            }
            error => match error.class() {
                ErrorClass::Disconnected => RuntimeError::Disconnected {
                    sandbox,
                    source: Some(Box::new(error)),
                },
                ErrorClass::Busy => RuntimeError::Busy {
                    sandbox,
                    deed,
                    reason: error.to_string(),
                },
                _ => RuntimeError::Internal {
                    deed,
                    source: Box::new(error),
                },
            },
        }
    }

    /// Runs a command of ours and requires that it succeeds.
    async fn require(&self, command: RunCommand) -> Result<(), RuntimeError> {
        let answer = self.run(Action::Run(command).into()).await?;
        let Observation { content, kind } = answer.observation;
        match kind {
            ObservationKind::Run(output) if output.metadata.exit_code == 0 => Ok(()),
            ObservationKind::Run(output) if output.metadata.exit_code == -1 => {
                Err(RuntimeError::Busy {
                    sandbox: self.parts.id.clone(),
                    deed: "set variables",
                    reason: "a command still runs in its default shell".to_owned(),
                })
            }
            _ => Err(RuntimeError::Invalid {
                message: format!("the shell could not set the variables: {content}"),
            }),
        }
    }

    /// A path inside; relative ones start in the workspace.
    fn inner(&self, path: &Path) -> PathBuf {
        self.parts.workspace.join(path)
    }
}

impl Sandbox for NativeSandbox {
    fn id(&self) -> &SandboxId {
        &self.parts.id
    }

    fn runtime(&self) -> &'static str {
        self.parts.runtime
    }

    fn status(&self) -> RuntimeStatus {
        self.parts.statuses.current()
    }

    fn workspace(&self) -> &Path {
        &self.parts.workspace
    }

    fn run_action(
        &self,
        action: ActionEvent,
    ) -> BoxFuture<'_, Result<ObservationEvent, RuntimeError>> {
        Box::pin(self.run(action))
    }

    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (link, from, to) = (self.parts.link.clone(), from.to_owned(), self.inner(to));
        Box::pin(self.transfer(async move { copy::copy_in(&link, &from, to).await }))
    }

    fn copy_from<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (link, from, to) = (self.parts.link.clone(), self.inner(from), to.to_owned());
        Box::pin(self.transfer(async move { copy::copy_out(&link, from, &to).await }))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        let link = self.parts.link.clone();
        Box::pin(self.inside("list files", async move { link.list_files(path).await }))
    }

    fn add_env(&self, variables: Vec<(String, String)>) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let variables = Variables::new(variables)?;
            self.require_running()?;
            if variables.is_empty() {
                return Ok(());
            }
            self.require(variables.export_command()).await?;
            match self.parts.variables {
                VariableStore::DefaultShell => Ok(()),
                VariableStore::StartUpFile => self.require(variables.start_up_command()).await,
            }
        })
    }

    /// Without walls, every port inside is the same port here, and there is nothing to list.
    fn ports(&self) -> Vec<Forwarded> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            self.parts.life.close().await;
            Ok(())
        })
    }
}
