//! A sandbox of either runtime, as callers see it.

mod files;

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_protocol::{
    Action, ActionEvent, ErrorClass, LimitHit, Observation, ObservationEvent, ObservationKind,
    RuntimeStatus,
};
use zareba_runtime::{
    Activity, ChangesRequest, Forwarded, RequestField, RuntimeError, Sandbox, SandboxFiles,
    SandboxId, Statuses, Turns, WorkspaceChanges, WorkspacePatch, life::Life,
};
use zareba_wire::{
    BoxFuture,
    client::ClientError,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use crate::{
    changes::{self, Layers},
    copy,
    link::{Link, LinkError},
    native::{Enclosure, PauseError, Room, VisitError},
};

/// What a sandbox is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: SandboxId,
    pub(crate) runtime: &'static str,
    pub(crate) workspace: PathBuf,
    pub(crate) timeout: Duration,
    /// What was asked for and does not hold.
    pub(crate) not_held: Vec<RequestField>,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) link: Link,
    pub(crate) life: Life,
    /// What can be done to it from outside, when it has walls.
    pub(crate) enclosure: Option<Arc<Enclosure>>,
}

/// A running place without walls.
#[derive(Debug)]
pub(crate) struct NativeSandbox {
    parts: Parts,
    turns: Turns,
}

impl NativeSandbox {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            turns: Turns::default(),
        }
    }

    async fn run(&self, action: ActionEvent) -> Result<ObservationEvent, RuntimeError> {
        let turn = self.turns.wait(&action).await;
        // Said here and not left to the executor, so that its client waits as long as it.
        let action = match action.hard_timeout() {
            Some(_) => action,
            None => action.with_timeout(self.parts.timeout.as_secs_f64()),
        };
        if let Some(refused) = self.refused_for_room(&action).await {
            return Ok(refused);
        }
        let link = self.parts.link.clone();
        let answer = self.inside("run the action", async move {
            let _turn = turn;
            link.execute(action).await
        });
        let mut event = answer.await?;
        self.tell_limits(&mut event.observation);
        Ok(event)
    }

    /// The answer to an action that writes more than the sandbox's files may take: the executor would
    /// write it, since only what runs inside is killed at the limit.
    async fn refused_for_room(&self, action: &ActionEvent) -> Option<ObservationEvent> {
        let bytes = match &action.action {
            Action::Write(write) => write.content.len(),
            Action::Edit(edit) => {
                let texts = [&edit.file_text, &edit.new_str].into_iter().flatten();
                texts.map(String::len).sum::<usize>() + edit.content.len()
            }
            _ => return None,
        };
        let refused = self.room()?.admit(bytes as u64, 1).await.err()?;
        Some(ObservationEvent::from(Observation::error(
            refused.to_string(),
        )))
    }

    /// What clients may still put into it, when it has walls.
    fn room(&self) -> Option<Arc<Room>> {
        self.parts.enclosure.as_ref()?.room()
    }

    /// Names the limits that the sandbox met while a command ran.
    fn tell_limits(&self, observation: &mut Observation) {
        let ObservationKind::Run(output) = &mut observation.kind else {
            return;
        };
        let Some(enclosure) = &self.parts.enclosure else {
            return;
        };
        let metadata = &mut output.metadata;
        for limit in enclosure.limits_met(metadata.exit_code) {
            metadata
                .suffix
                .push_str(&format!("\n[Limit: {}.]", limit.message));
            metadata.limits.push(limit);
        }
    }

    /// Does something to the sandbox from outside, on a thread that may block.
    async fn outside<T: Send + 'static>(
        &self,
        deed: &'static str,
        work: impl FnOnce(&Enclosure) -> Result<T, PauseError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let enclosure = self.parts.enclosure.clone();
        let enclosure = enclosure.ok_or(RuntimeError::Unsupported {
            runtime: self.parts.runtime,
            deed,
        })?;
        let done = tokio::task::spawn_blocking(move || work(&enclosure)).await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(PauseError::Ended)) => Err(self.closed()),
            Ok(Err(error @ PauseError::NotKeptApart)) => Err(RuntimeError::Invalid {
                message: error.to_string(),
            }),
            Ok(Err(error)) => Err(RuntimeError::Internal {
                deed,
                source: Box::new(error),
            }),
            Err(error) => Err(RuntimeError::Internal {
                deed,
                source: Box::new(error),
            }),
        }
    }

    /// Compares the workspace below a path with the directory that it shows.
    fn compare<'a, T: Send + 'static>(
        &'a self,
        request: &ChangesRequest,
        tell: impl FnOnce(&Layers, &Path) -> T + Send + 'static,
    ) -> BoxFuture<'a, Result<T, RuntimeError>> {
        let Some(below) = changes::below(&self.parts.workspace, request.path.as_deref()) else {
            let message = "the path of changes must lie in the workspace".to_owned();
            return Box::pin(std::future::ready(Err(RuntimeError::Invalid { message })));
        };
        let deed = "tell what has changed in a workspace";
        Box::pin(self.outside(deed, move |enclosure| {
            Ok(tell(&enclosure.layers()?, &below))
        }))
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

    async fn transfer<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RuntimeError>> + Send + 'static,
    ) -> Result<T, RuntimeError> {
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
                source: self.end_reason(),
            }),
            _ if self.is_paused() => Err(RuntimeError::Paused {
                sandbox: self.parts.id.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Why it has ended, when a limit was the reason.
    fn end_reason(&self) -> Option<Box<dyn std::error::Error + Send + Sync>> {
        let reason = self.parts.enclosure.as_ref()?.end_reason()?;
        Some(Box::new(reason))
    }

    fn is_paused(&self) -> bool {
        let enclosure = self.parts.enclosure.as_ref();
        enclosure.is_some_and(|enclosure| enclosure.is_paused())
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
            LinkError::Program(error) => RuntimeError::Program(error),
            LinkError::File(error) | LinkError::Request(ClientError::File(error)) => {
                RuntimeError::File(error)
            }
            LinkError::Request(ClientError::Timeout { waited }) => RuntimeError::Timeout { waited },
            LinkError::Request(ClientError::InvalidRequest { problem }) => {
                RuntimeError::Invalid { message: problem }
            }
            error => match error.class() {
                ErrorClass::Disconnected => RuntimeError::Disconnected {
                    sandbox,
                    source: self.end_reason().or_else(|| Some(Box::new(error))),
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

    fn not_held(&self) -> &[RequestField] {
        &self.parts.not_held
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

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, RuntimeError>> {
        let link = self.parts.link.clone();
        let start = async move { link.start_program(request).await };
        Box::pin(self.inside("start the program", start))
    }

    fn read_output(
        &self,
        request: OutputRequest,
    ) -> BoxFuture<'_, Result<OutputPiece, RuntimeError>> {
        let link = self.parts.link.clone();
        let read = async move { link.read_output(request).await };
        Box::pin(self.inside("read the output", read))
    }

    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Result<bool, RuntimeError>> {
        let link = self.parts.link.clone();
        let stop = async move { link.stop_action(request).await };
        Box::pin(self.inside("stop the action", stop))
    }

    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (link, from, to) = (self.parts.link.clone(), from.to_owned(), self.inner(to));
        let room = self.room();
        Box::pin(self.transfer(async move { copy::copy_in(&link, &from, to, room).await }))
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

    fn files(&self) -> Result<&dyn SandboxFiles, RuntimeError> {
        Ok(self)
    }

    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, RuntimeError>> {
        self.compare(&request, Layers::changes)
    }

    fn patch(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspacePatch, RuntimeError>> {
        self.compare(&request, Layers::patch)
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let link = self.parts.link.clone();
        let set = async move { link.set_variables(changes).await };
        Box::pin(self.inside("set variables", set))
    }

    /// Without walls, every port inside is the same port here, and there is nothing to list.
    fn ports(&self) -> Vec<Forwarded> {
        Vec::new()
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.outside("pause a sandbox", Enclosure::pause))
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.outside("resume a sandbox", Enclosure::resume))
    }

    fn limits_met(&self, exit_code: i64) -> BoxFuture<'_, Vec<LimitHit>> {
        let enclosure = self.parts.enclosure.clone();
        let read = move || enclosure.map(|enclosure| enclosure.limits_met(exit_code));
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(read).await;
            read.ok().flatten().unwrap_or_default()
        })
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Value, RuntimeError>> {
        let not_held = self.parts.not_held.clone();
        let inspect = |enclosure: &Enclosure| {
            let mut found = enclosure.inspect().ok_or(PauseError::Ended)?;
            found["not_held"] = not_held.into_iter().map(RequestField::as_str).collect();
            Ok(found)
        };
        Box::pin(self.outside("inspect a sandbox", inspect))
    }

    fn activity(&self) -> BoxFuture<'_, Result<Activity, RuntimeError>> {
        Box::pin(self.outside("say what goes on inside", Enclosure::activity))
    }

    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, RuntimeError>> {
        Box::pin(async move {
            self.require_running()?;
            let refused = |message| RuntimeError::Invalid { message };
            let Some(enclosure) = self.parts.enclosure.clone() else {
                // Without walls every port inside is the same port here.
                let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
                return connected
                    .map_err(|error| refused(format!("cannot connect to port {port}: {error}")));
            };
            let connected = tokio::task::spawn_blocking(move || enclosure.connect(port)).await;
            let internal = |source: Box<dyn std::error::Error + Send + Sync>| {
                let deed = "connect to a port inside";
                RuntimeError::Internal { deed, source }
            };
            let stream = match connected {
                Ok(Ok(stream)) => stream,
                Ok(Err(VisitError::Refused(message))) => return Err(refused(message)),
                Ok(Err(error)) => return Err(internal(Box::new(error))),
                Err(error) => return Err(internal(Box::new(error))),
            };
            let set = stream.set_nonblocking(true);
            set.and_then(|()| TcpStream::from_std(stream))
                .map_err(|error| internal(Box::new(error)))
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            self.parts.life.close().await;
            Ok(())
        })
    }
}
