//! The two traits: what makes sandboxes, and a sandbox.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_protocol::{ActionEvent, LimitHit, ObservationEvent, RuntimeStatus};
use zareba_wire::{
    BoxFuture,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use crate::{
    Capabilities, ChangesRequest, Grant, PoolCounts, RequestField, RuntimeError, SandboxFiles,
    SandboxId, SandboxRequest, SandboxSpec, SandboxSummary, WorkspaceChanges, WorkspacePatch,
};

/// A frozen state of a sandbox's files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckpointId(pub String);

/// What goes on inside a sandbox, as it is seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Processor time that was used so far. Only the difference of two looks means anything.
    pub processor: Duration,
    /// A shell or another program on a terminal waits for a command that it has started.
    pub has_command: bool,
}

/// A port inside a sandbox and where it is reached from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// The port that a program inside listens on.
    pub inside: u16,
    /// The address to connect to.
    pub outside: SocketAddr,
}

/// Finds a place to run and starts the executor there; one implementation per backend.
pub trait Runtime: Send + Sync {
    /// The backend's name, as configuration spells it.
    fn name(&self) -> &'static str;

    /// What it can promise on this machine.
    fn capabilities(&self) -> Capabilities;

    /// Makes a sandbox and returns once it can run actions. Dropping the future half-way leaves
    /// nothing behind: the backend owns the clean-up.
    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>>;

    /// The name of a sandbox that is started already and fits, kept for a while for whoever calls
    /// [`create`](Self::create) with this name. So a name can be written down before the sandbox
    /// is anybody's.
    fn reserve(&self, spec: &SandboxSpec) -> Option<SandboxId> {
        let _ = spec;
        None
    }

    /// What a sandbox gets of a request, with what is in force where nothing is asked. Nothing is
    /// made, and no other process is asked.
    ///
    /// # Errors
    /// [`RuntimeError::Unhonoured`] for what this backend cannot hold on this machine, unless the
    /// request is best effort; [`RuntimeError::Invalid`] for what makes no sense.
    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError>;

    /// Whether what a rule lets through is let through by the operator's own rules, too.
    fn covers_rule(&self, rule: &str) -> bool {
        let usual = self.grant(&SandboxRequest::default());
        let network = usual.ok().and_then(|usual| usual.network);
        network.is_some_and(|network| network.allow.iter().any(|own| own == rule))
    }

    /// Whether what a rule lets through is let through by one of these rules, too. A backend that knows
    /// no rules compares their texts.
    fn rules_cover(&self, rules: &[String], rule: &str) -> bool {
        rules.iter().any(|own| own == rule)
    }

    /// How its sandboxes that are started ahead do, if it has any.
    fn pool(&self) -> Option<PoolCounts> {
        None
    }

    /// Finds a running sandbox again.
    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let _ = sandbox;
        unsupported(self.name(), "find a sandbox again")
    }

    /// Ends a sandbox, whoever has made it and whether or not it answers, and removes what is
    /// left of it.
    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let _ = sandbox;
        unsupported(self.name(), "end a sandbox by its name")
    }

    /// The sandboxes that can be found again, and what is left of those that have ended.
    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        unsupported(self.name(), "list sandboxes")
    }
}

/// A running place.
///
/// Every method may be called from many tasks at once. Actions on one shell run in the order
/// in which they were asked for, on different shells at once. Dropping the last handle closes
/// the sandbox unless the backend promises that it lives on.
pub trait Sandbox: Send + Sync {
    /// Its name.
    fn id(&self) -> &SandboxId;

    /// The backend's name.
    fn runtime(&self) -> &'static str;

    /// What was asked for and does not hold, by name; only where the caller has agreed to that.
    fn not_held(&self) -> &[RequestField] {
        &[]
    }

    /// How it is now.
    fn status(&self) -> RuntimeStatus;

    /// The directory to work in, as programs inside see it.
    fn workspace(&self) -> &Path;

    /// Runs one action. Dropping the future leaves a command running, as after a timeout.
    fn run_action(
        &self,
        action: ActionEvent,
    ) -> BoxFuture<'_, Result<ObservationEvent, RuntimeError>>;

    /// Starts a program with streams of its own, on a terminal or on pipes, and returns once it
    /// runs. Dropping the connection ends the program.
    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, RuntimeError>> {
        let _ = request;
        unsupported(self.runtime(), "start a program with streams of its own")
    }

    /// Some of the output of an action that was given a name to run once under, as soon as there
    /// is something new.
    fn read_output(
        &self,
        request: OutputRequest,
    ) -> BoxFuture<'_, Result<OutputPiece, RuntimeError>> {
        let _ = request;
        unsupported(self.runtime(), "show the output of a command while it runs")
    }

    /// Brings an action that was given a name to run once under to its end before its time, and
    /// says whether it was under way. What comes of it is told to whoever runs it.
    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Result<bool, RuntimeError>> {
        let _ = request;
        unsupported(self.runtime(), "stop an action")
    }

    /// Copies a file or a directory of this machine into a directory inside, which is made when
    /// missing. A directory keeps its name.
    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// Copies what a directory inside holds, or one file, into a directory of this machine.
    fn copy_from<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// Names in a directory inside: directories first, with a slash behind, then files.
    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>>;

    /// Its files as bytes.
    ///
    /// # Errors
    /// When the backend has no such thing.
    fn files(&self) -> Result<&dyn SandboxFiles, RuntimeError> {
        Err(RuntimeError::Unsupported {
            runtime: self.runtime(),
            deed: "offer files as bytes",
        })
    }

    /// What it has changed in its workspace, where that is kept apart from the directory that the
    /// workspace shows. The sandbox is looked at from outside and may go on changing files
    /// meanwhile; a paused one can be asked as well.
    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, RuntimeError>> {
        let _ = request;
        unsupported(self.runtime(), CHANGES_DEED)
    }

    /// The same as a patch that `git apply` takes.
    fn patch(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspacePatch, RuntimeError>> {
        let _ = request;
        unsupported(self.runtime(), CHANGES_DEED)
    }

    /// Sets and removes variables of all shells, of programs and of terminals. A shell that is
    /// there gets them with its next command; a program that runs keeps what it has.
    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), RuntimeError>>;

    /// Ports inside that can be reached from here.
    fn ports(&self) -> Vec<Forwarded>;

    /// Connects to a port that a program inside listens on. The sandbox's network is not opened
    /// by that: only this one connection goes in.
    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, RuntimeError>> {
        let _ = port;
        unsupported(self.runtime(), "connect to a port inside")
    }

    /// The limits of the sandbox that were met since the last time this was asked, or since the
    /// sandbox was found. Actions tell theirs themselves; this is for programs, of which the last
    /// ended with this exit code.
    fn limits_met(&self, exit_code: i64) -> BoxFuture<'_, Vec<LimitHit>> {
        let _ = exit_code;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// What stands around it and what it uses, as a document for people and programs.
    fn inspect(&self) -> BoxFuture<'_, Result<Value, RuntimeError>> {
        unsupported(self.runtime(), "inspect a sandbox")
    }

    /// What goes on inside, for those who would pause a sandbox in which nothing does.
    fn activity(&self) -> BoxFuture<'_, Result<Activity, RuntimeError>> {
        unsupported(self.runtime(), "say what goes on inside")
    }

    /// Freezes every process inside.
    fn pause(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        unsupported(self.runtime(), "pause a sandbox")
    }

    /// Lets them go on.
    fn resume(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        unsupported(self.runtime(), "resume a sandbox")
    }

    /// Seals the files as they are now.
    fn checkpoint(&self) -> BoxFuture<'_, Result<CheckpointId, RuntimeError>> {
        unsupported(self.runtime(), "checkpoint a sandbox")
    }

    /// Puts the files back to a sealed state.
    fn rollback(&self, checkpoint: &CheckpointId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let _ = checkpoint;
        unsupported(self.runtime(), "roll a sandbox back")
    }

    /// Makes a second sandbox with the same files.
    fn fork(&self) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        unsupported(self.runtime(), "fork a sandbox")
    }

    /// Ends it with everything that runs inside. Closing twice is no error.
    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>>;
}

const CHANGES_DEED: &str = "tell what has changed in a workspace";

fn unsupported<'a, T: Send + 'a>(
    runtime: &'static str,
    deed: &'static str,
) -> BoxFuture<'a, Result<T, RuntimeError>> {
    Box::pin(std::future::ready(Err(RuntimeError::Unsupported {
        runtime,
        deed,
    })))
}
