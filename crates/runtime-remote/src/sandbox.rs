//! A sandbox on another server, as callers see it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_protocol::{
    Action, ActionEvent, ErrorClass, Observation, ObservationEvent, ObservationKind, RunCommand,
    RuntimeStatus,
};
use zareba_runtime::{
    ChangesRequest, Forwarded, RequestField, RuntimeError, Sandbox, SandboxFiles, SandboxId,
    Statuses, Turns, WorkspaceChanges, WorkspacePatch,
};
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use crate::{
    copy,
    life::Life,
    link::{Link, LinkError},
    variables::{export_command, start_up_command},
};

/// What becomes of a sandbox when its last handle is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// It is ended.
    Close,
    /// It lives on, until somebody closes it or the other server does.
    Leave,
}

/// Where variables go that are set in a running sandbox whose executor has only shells for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableStore {
    /// Into the default shell, and nowhere else.
    DefaultShell,
    /// Into `~/.bashrc` inside as well, for shells to come.
    StartUpFile,
}

/// What a sandbox is made of.
pub(crate) struct Parts {
    pub(crate) id: SandboxId,
    pub(crate) runtime: &'static str,
    pub(crate) workspace: PathBuf,
    /// What was asked for and does not hold.
    pub(crate) not_held: Vec<RequestField>,
    /// How long an action may take that does not say so itself; `None` is as the other side says.
    pub(crate) timeout: Option<Duration>,
    pub(crate) variables: VariableStore,
    pub(crate) farewell: Farewell,
    pub(crate) statuses: Statuses,
    pub(crate) link: Box<dyn Link>,
}

/// A handle; dropping it may end the sandbox.
pub(crate) struct RemoteSandbox {
    place: Arc<Place>,
}

/// What outlives the handle while the sandbox is being ended.
pub(crate) struct Place {
    pub(crate) parts: Parts,
    life: Life,
    turns: Turns,
}

impl RemoteSandbox {
    pub(crate) fn new(parts: Parts) -> Self {
        let place = Place {
            parts,
            life: Life::new(),
            turns: Turns::default(),
        };
        Self {
            place: Arc::new(place),
        }
    }
}

impl RemoteSandbox {
    /// Waits until a new sandbox answers. One that does not is ended.
    pub(crate) async fn begin(self) -> Result<Self, RuntimeError> {
        let Parts { statuses, link, .. } = &self.place.parts;
        let started = "the sandbox runs and does not answer yet";
        statuses.change(RuntimeStatus::RuntimeStarted, started);
        match link.ready().await {
            Ok(()) => {
                statuses.change(RuntimeStatus::Ready, "actions can run");
                Ok(self)
            }
            Err(error) => {
                let error = self.place.not_ready(error);
                statuses.change(RuntimeStatus::Error, error.to_string());
                self.end().await;
                Err(error)
            }
        }
    }

    /// Takes up a sandbox that was there before.
    pub(crate) async fn take_up(self, condition: Condition) -> Result<Self, RuntimeError> {
        let Parts { statuses, link, .. } = &self.place.parts;
        let answered = match condition {
            Condition::Awake => link.ready().await,
            Condition::Asleep => link.resume().await,
        };
        answered.map_err(|error| self.place.not_ready(error))?;
        statuses.change(RuntimeStatus::Ready, "actions can run");
        Ok(self)
    }

    /// Ends it when nobody wants it any more, whatever is said about dropping it.
    pub(crate) async fn end(&self) {
        if let Err(error) = self.place.close().await {
            let sandbox = &self.place.parts.id;
            tracing::warn!(%sandbox, %error, "a sandbox could not be ended");
        }
    }
}

/// How a sandbox is that is taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It runs.
    Awake,
    /// Its processes are frozen.
    Asleep,
}

impl Drop for RemoteSandbox {
    fn drop(&mut self) {
        if self.place.parts.farewell == Farewell::Leave || self.place.life.is_closed() {
            return;
        }
        // Without an async runtime there is nobody to send the request.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            tracing::warn!(sandbox = %self.place.parts.id, "a remote sandbox was dropped too late to be ended");
            return;
        };
        let place = Arc::clone(&self.place);
        runtime.spawn(async move {
            if let Err(error) = place.close().await {
                let sandbox = &place.parts.id;
                tracing::warn!(%sandbox, %error, "a dropped sandbox could not be ended");
            }
        });
    }
}

impl Place {
    async fn run(&self, action: ActionEvent) -> Result<ObservationEvent, RuntimeError> {
        // Said here where it is known, so that both sides wait equally long.
        let action = match (action.hard_timeout(), self.parts.timeout) {
            (None, Some(timeout)) => action.with_timeout(timeout.as_secs_f64()),
            _ => action,
        };
        let work = async {
            let _turn = self.turns.wait(&action).await;
            self.parts.link.execute(action).await
        };
        self.inside("run the action", work).await
    }

    /// Asks the other side for something while the sandbox is open.
    pub(crate) async fn inside<T>(
        &self,
        deed: &'static str,
        work: impl Future<Output = Result<T, LinkError>>,
    ) -> Result<T, RuntimeError> {
        match self.life.run(work).await {
            Err(_) => Err(self.closed()),
            Ok(Ok(value)) => {
                self.heard_of();
                Ok(value)
            }
            Ok(Err(error)) => Err(self.explain(deed, error)),
        }
    }

    async fn transfer(
        &self,
        work: impl Future<Output = Result<(), RuntimeError>>,
    ) -> Result<(), RuntimeError> {
        let done = self.life.run(work).await;
        done.unwrap_or_else(|_| Err(self.closed()))
    }

    /// It answers again after it did not.
    fn heard_of(&self) {
        let statuses = &self.parts.statuses;
        if statuses.current() == RuntimeStatus::RuntimeDisconnected {
            statuses.change(RuntimeStatus::Ready, "the sandbox answers again");
        }
    }

    fn lost(&self, error: &LinkError) {
        let statuses = &self.parts.statuses;
        if statuses.current() != RuntimeStatus::RuntimeDisconnected {
            statuses.change(RuntimeStatus::RuntimeDisconnected, error.to_string());
        }
    }

    fn closed(&self) -> RuntimeError {
        RuntimeError::Closed {
            sandbox: self.parts.id.clone(),
        }
    }

    fn explain(&self, deed: &'static str, error: LinkError) -> RuntimeError {
        let sandbox = self.parts.id.clone();
        match (error.class(), error) {
            (_, LinkError::Timeout { waited }) => RuntimeError::Timeout { waited },
            (_, LinkError::Program(error)) => error.into(),
            (_, LinkError::File(error)) => error.into(),
            (ErrorClass::Disconnected, error) => {
                self.lost(&error);
                let source = Some(error.into());
                RuntimeError::Disconnected { sandbox, source }
            }
            (ErrorClass::NotFound, LinkError::Refused { .. }) => RuntimeError::NotFound { sandbox },
            (ErrorClass::Busy, error) => RuntimeError::Busy {
                sandbox,
                deed,
                reason: error.to_string(),
            },
            (ErrorClass::Unsupported, _) => RuntimeError::Unsupported {
                runtime: self.parts.runtime,
                deed,
            },
            (ErrorClass::Invalid | ErrorClass::Permission, error) => RuntimeError::Invalid {
                message: format!("cannot {deed}: {error}"),
            },
            (_, error) => {
                let source = error.into();
                RuntimeError::Internal { deed, source }
            }
        }
    }

    fn not_ready(&self, error: LinkError) -> RuntimeError {
        let sandbox = self.parts.id.clone();
        match error {
            LinkError::Timeout { waited } => RuntimeError::NotReady { sandbox, waited },
            error => RuntimeError::Start {
                runtime: self.parts.runtime,
                source: error.into(),
            },
        }
    }

    async fn close(&self) -> Result<(), RuntimeError> {
        let end = async {
            let stopped = self.parts.link.stop().await;
            stopped.map_err(|error| self.explain("end the sandbox", error))?;
            let statuses = &self.parts.statuses;
            statuses.change(RuntimeStatus::Stopped, "the sandbox was ended");
            Ok(())
        };
        self.life.close(end).await
    }

    async fn set_variables(&self, changes: VariableChanges) -> Result<(), RuntimeError> {
        let set = self.parts.link.set_variables(changes.clone());
        match self.inside("set variables", set).await {
            // A server of another kind has only its shells.
            Err(RuntimeError::Unsupported { .. }) if !changes.is_empty() => {
                self.require(export_command(&changes)).await?;
                match self.parts.variables {
                    VariableStore::DefaultShell => Ok(()),
                    VariableStore::StartUpFile => self.require(start_up_command(&changes)).await,
                }
            }
            Err(RuntimeError::Unsupported { .. }) => Ok(()),
            set => set,
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

impl Sandbox for RemoteSandbox {
    fn id(&self) -> &SandboxId {
        &self.place.parts.id
    }

    fn runtime(&self) -> &'static str {
        self.place.parts.runtime
    }

    fn not_held(&self) -> &[RequestField] {
        &self.place.parts.not_held
    }

    fn status(&self) -> RuntimeStatus {
        self.place.parts.statuses.current()
    }

    fn workspace(&self) -> &Path {
        &self.place.parts.workspace
    }

    fn run_action(
        &self,
        action: ActionEvent,
    ) -> BoxFuture<'_, Result<ObservationEvent, RuntimeError>> {
        Box::pin(self.place.run(action))
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, RuntimeError>> {
        let started = self.place.parts.link.start_program(request);
        let deed = "start a program with streams of its own";
        Box::pin(self.place.inside(deed, started))
    }

    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let place = &self.place;
        let copy = copy::copy_in(&*place.parts.link, from, place.inner(to));
        Box::pin(place.transfer(copy))
    }

    fn copy_from<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let place = &self.place;
        let copy = copy::copy_out(&*place.parts.link, place.inner(from), to);
        Box::pin(place.transfer(copy))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        let names = self.place.parts.link.list_files(path);
        Box::pin(self.place.inside("list files", names))
    }

    fn files(&self) -> Result<&dyn SandboxFiles, RuntimeError> {
        match self.place.parts.link.files() {
            Some(_) => Ok(&*self.place),
            None => Err(RuntimeError::Unsupported {
                runtime: self.place.parts.runtime,
                deed: "offer files as bytes",
            }),
        }
    }

    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, RuntimeError>> {
        let changes = self.place.parts.link.changes(request);
        Box::pin(
            self.place
                .inside("tell what has changed in a workspace", changes),
        )
    }

    fn patch(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspacePatch, RuntimeError>> {
        let patch = self.place.parts.link.patch(request);
        Box::pin(
            self.place
                .inside("tell what has changed in a workspace", patch),
        )
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.place.set_variables(changes))
    }

    /// None is known here: the other server decides what can be reached.
    fn ports(&self) -> Vec<Forwarded> {
        Vec::new()
    }

    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, RuntimeError>> {
        let connected = self.place.parts.link.connect_port(port);
        Box::pin(self.place.inside("connect to a port inside", connected))
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Value, RuntimeError>> {
        let inspected = self.place.parts.link.inspect();
        Box::pin(self.place.inside("inspect a sandbox", inspected))
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let pause = self.place.parts.link.pause();
        Box::pin(self.place.inside("pause a sandbox", pause))
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let resume = self.place.parts.link.resume();
        Box::pin(self.place.inside("resume a sandbox", resume))
    }

    /// Dropping the future does not keep it from being ended.
    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let place = Arc::clone(&self.place);
        Box::pin(async move {
            let closing = tokio::spawn(async move { place.close().await });
            closing.await.unwrap_or_else(|error| {
                let (deed, source) = ("end the sandbox", Box::new(error));
                Err(RuntimeError::Internal { deed, source })
            })
        })
    }
}
