//! [`Sandbox`] behind the door: every method of the trait, each with the deed that it is.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_protocol::{ActionEvent, LimitHit, ObservationEvent, RuntimeStatus};
use zareba_runtime::{
    Activity, ChangesRequest, CheckpointId, Forwarded, RequestField, RuntimeError, Sandbox,
    SandboxFiles, SandboxId, WorkspaceChanges, WorkspacePatch,
};
use zareba_wire::{
    BoxFuture,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use super::{AdmittedSandbox, transcript};
use crate::{
    Deed,
    deed::{Recording, SandboxChange},
};

impl AdmittedSandbox {
    /// Does a deed that sends nothing along.
    pub(super) async fn perform<'a, T>(
        &'a self,
        deed: Deed,
        work: impl FnOnce() -> BoxFuture<'a, Result<T, RuntimeError>> + Send,
    ) -> Result<T, RuntimeError> {
        let id = self.sandbox.id();
        self.door.perform(deed, id, work, |_| {}).await
    }

    async fn start(&self, request: ProgramRequest) -> Result<ProgramConnection, RuntimeError> {
        let is_terminal = request.terminal.is_some();
        let deed = Deed::Program {
            purpose: self.purpose.clone(),
            request: Box::new(request.clone()),
        };
        if deed.recording() == Recording::Counted {
            return self
                .perform(deed, || self.sandbox.start_program(request))
                .await;
        }
        self.door.judge(&deed, Some(self.sandbox.id())).await?;
        let under_way = self.door.begin(&deed).await?;
        match self.sandbox.start_program(request).await {
            Ok(program) => Ok(transcript::record(program, under_way, is_terminal)),
            Err(error) => {
                under_way
                    .end(super::outcome(Err(super::word(&error))))
                    .await;
                Err(error)
            }
        }
    }
}

impl Sandbox for AdmittedSandbox {
    fn id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    fn runtime(&self) -> &'static str {
        self.sandbox.runtime()
    }

    fn not_held(&self) -> &[RequestField] {
        self.sandbox.not_held()
    }

    fn status(&self) -> RuntimeStatus {
        self.sandbox.status()
    }

    fn workspace(&self) -> &Path {
        self.sandbox.workspace()
    }

    fn run_action(
        &self,
        action: ActionEvent,
    ) -> BoxFuture<'_, Result<ObservationEvent, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Action(Box::new(action.clone()));
            self.perform(deed, || self.sandbox.run_action(action)).await
        })
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, RuntimeError>> {
        Box::pin(self.start(request))
    }

    fn read_output(
        &self,
        request: OutputRequest,
    ) -> BoxFuture<'_, Result<OutputPiece, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::ReadOutput {
                action: request.action.clone(),
            };
            self.perform(deed, || self.sandbox.read_output(request))
                .await
        })
    }

    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Result<bool, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::StopAction {
                action: request.action.clone(),
                means: request.means,
            };
            self.perform(deed, || self.sandbox.stop_action(request))
                .await
        })
    }

    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let path = to.to_string_lossy().into_owned();
            let deed = Deed::CopyTo { path };
            self.perform(deed, || self.sandbox.copy_to(from, to)).await
        })
    }

    fn copy_from<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let path = from.to_string_lossy().into_owned();
            let deed = Deed::CopyFrom { path };
            self.perform(deed, || self.sandbox.copy_from(from, to))
                .await
        })
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::List {
                path: path.clone().unwrap_or_else(|| ".".to_owned()),
            };
            self.perform(deed, || self.sandbox.list_files(path)).await
        })
    }

    fn files(&self) -> Result<&dyn SandboxFiles, RuntimeError> {
        self.sandbox.files()?;
        Ok(self)
    }

    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, RuntimeError>> {
        Box::pin(async move {
            let deed = changes(&request, false);
            self.perform(deed, || self.sandbox.changes(request)).await
        })
    }

    fn patch(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspacePatch, RuntimeError>> {
        Box::pin(async move {
            let deed = changes(&request, true);
            self.perform(deed, || self.sandbox.patch(request)).await
        })
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let names = changes.iter().map(|(name, _)| name.to_owned());
            let deed = Deed::SetVariables {
                names: names.collect(),
            };
            self.perform(deed, || self.sandbox.set_variables(changes))
                .await
        })
    }

    fn ports(&self) -> Vec<Forwarded> {
        self.sandbox.ports()
    }

    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Port { port };
            self.perform(deed, || self.sandbox.connect_port(port)).await
        })
    }

    /// It is seen from outside: nothing is done to the sandbox.
    fn limits_met(&self, exit_code: i64) -> BoxFuture<'_, Vec<LimitHit>> {
        self.sandbox.limits_met(exit_code)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Value, RuntimeError>> {
        self.sandbox.inspect()
    }

    fn activity(&self) -> BoxFuture<'_, Result<Activity, RuntimeError>> {
        self.sandbox.activity()
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let deed = Deed::Manage(SandboxChange::Pause);
        Box::pin(self.perform(deed, || self.sandbox.pause()))
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let deed = Deed::Manage(SandboxChange::Resume);
        Box::pin(self.perform(deed, || self.sandbox.resume()))
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<CheckpointId, RuntimeError>> {
        let deed = Deed::Manage(SandboxChange::Checkpoint);
        Box::pin(self.perform(deed, || self.sandbox.checkpoint()))
    }

    fn rollback(&self, checkpoint: &CheckpointId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let checkpoint = checkpoint.clone();
        Box::pin(async move {
            let deed = Deed::Manage(SandboxChange::Rollback);
            let sandbox = Arc::clone(&self.sandbox);
            let work = || -> BoxFuture<'_, _> {
                Box::pin(async move { sandbox.rollback(&checkpoint).await })
            };
            self.perform(deed, work).await
        })
    }

    fn fork(&self) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Manage(SandboxChange::Fork);
            let fork = self.perform(deed, || self.sandbox.fork()).await?;
            Ok(Arc::new(self.door.clone().open(fork)) as Arc<dyn Sandbox>)
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let deed = Deed::Manage(SandboxChange::Close);
        Box::pin(self.perform(deed, || self.sandbox.close()))
    }
}

fn changes(request: &ChangesRequest, is_patch: bool) -> Deed {
    let path = request.path.clone().unwrap_or_else(|| ".".to_owned());
    Deed::Changes { path, is_patch }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The names of methods between two lines of a source.
    fn methods(source: &str, start: &str) -> BTreeSet<String> {
        let (_, behind) = source.split_once(start).unwrap();
        let (body, _) = behind.split_once("\n}").unwrap();
        let lines = body.lines().filter_map(|line| line.strip_prefix("    fn "));
        let name = |line: &str| line.split(['(', '<']).next().unwrap_or_default().to_owned();
        lines.map(name).collect()
    }

    #[test]
    fn every_method_of_a_sandbox_and_of_its_files_has_its_deed_here() {
        let sandbox = include_str!("../../../runtime/src/sandbox.rs");
        let asked = methods(sandbox, "pub trait Sandbox:");
        assert!(asked.contains("run_action"));
        let here = include_str!("sandbox.rs");
        assert_eq!(methods(here, "impl Sandbox for AdmittedSandbox"), asked);
        let files = include_str!("../../../runtime/src/files.rs");
        let asked = methods(files, "pub trait SandboxFiles:");
        assert!(asked.contains("write"));
        let here = include_str!("files.rs");
        assert_eq!(
            methods(here, "impl SandboxFiles for AdmittedSandbox"),
            asked
        );
    }
}
