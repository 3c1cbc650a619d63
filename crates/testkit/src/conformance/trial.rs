//! What cases are written with: making sandboxes, running commands, hearing of statuses.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail, ensure};
use tokio::sync::mpsc;
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, Observation, ObservationKind, RunCommand, RuntimeStatus,
    ShellName,
};
use zareba_runtime::{Sandbox, SandboxSpec};

use super::{Backend, Failure};

/// How long a command may be silent in these tests. The contract tells whole seconds.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// More status changes than a sandbox ever has in a case.
const STATUSES_MAX: usize = 64;

/// A backend, and a mark by which what runs in its sandboxes is known.
pub struct Trial {
    backend: Box<dyn Backend>,
    mark: String,
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Trial")
            .field("runtime", &self.backend.runtime().name())
            .field("mark", &self.mark)
            .finish()
    }
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ran {
    pub(super) content: String,
    pub(super) metadata: CommandMetadata,
}

impl Trial {
    pub(super) fn new(backend: Box<dyn Backend>) -> Self {
        // Two random states of the hasher: unique enough, and no dependency.
        let number = || {
            use std::hash::{BuildHasher as _, RandomState};
            RandomState::new().hash_one(())
        };
        let mark = format!("conformance-{:016x}{:016x}", number(), number());
        Self { backend, mark }
    }

    pub(super) fn runtime(&self) -> &dyn zareba_runtime::Runtime {
        self.backend.runtime()
    }

    pub(super) fn traces(&self) -> Vec<String> {
        self.backend.traces(&self.mark)
    }

    /// An empty workspace, and our mark.
    pub(super) fn spec(&self) -> SandboxSpec {
        SandboxSpec {
            id: None,
            image: None,
            workspace: None,
            environment: vec![("CONFORMANCE_MARK".to_owned(), self.mark.clone())],
            no_change_timeout: SILENCE,
            timeout: Duration::from_secs(60),
            request: zareba_runtime::SandboxRequest::default(),
            on_status: None,
        }
    }

    pub(super) async fn sandbox(&self) -> Result<Arc<dyn Sandbox>, Failure> {
        self.sandbox_of(self.spec()).await
    }

    pub(super) async fn sandbox_of(&self, spec: SandboxSpec) -> Result<Arc<dyn Sandbox>, Failure> {
        let created = self.runtime().create(spec).await;
        created.context("cannot create a sandbox")
    }

    /// A spec whose statuses can be listened to.
    pub(super) fn spec_with_statuses(&self) -> (SandboxSpec, mpsc::Receiver<RuntimeStatus>) {
        let (sender, receiver) = mpsc::channel(STATUSES_MAX);
        let mut spec = self.spec();
        spec.on_status = Some(Arc::new(move |update| {
            // Nobody listens any more when a case has ended.
            let _ = sender.try_send(update.status);
        }));
        (spec, receiver)
    }
}

/// Runs an action that must be answered by a `run` observation.
pub(super) async fn perform(
    sandbox: &dyn Sandbox,
    action: impl Into<ActionEvent>,
) -> Result<Ran, Failure> {
    let answer = sandbox.run_action(action.into()).await?;
    match answer.observation {
        Observation {
            content,
            kind: ObservationKind::Run(output),
        } => Ok(Ran {
            content,
            metadata: output.metadata,
        }),
        other => bail!("not a command's observation: {other:?}"),
    }
}

/// Runs a command in the default shell.
pub(super) async fn run(sandbox: &dyn Sandbox, command: &str) -> Result<Ran, Failure> {
    perform(sandbox, command_of(command)).await
}

/// Runs a command in the shell `shell`.
pub(super) async fn run_in(
    sandbox: &dyn Sandbox,
    shell: &str,
    command: &str,
) -> Result<Ran, Failure> {
    let action = ActionEvent::from(command_of(command));
    perform(sandbox, action.with_shell(ShellName::new(shell)?)).await
}

/// The output of a command that must succeed.
pub(super) async fn output(sandbox: &dyn Sandbox, command: &str) -> Result<String, Failure> {
    succeeded(command, run(sandbox, command).await?)
}

/// The same in the shell `shell`.
pub(super) async fn output_in(
    sandbox: &dyn Sandbox,
    shell: &str,
    command: &str,
) -> Result<String, Failure> {
    succeeded(command, run_in(sandbox, shell, command).await?)
}

/// An action that runs a command and waits for its end, however silent it is.
pub(super) fn command_of(command: &str) -> Action {
    Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    })
}

/// The status of a command that ended, and what it wrote.
pub(super) fn ended(ran: &Ran) -> (i64, &str) {
    (ran.metadata.exit_code, ran.content.as_str())
}

fn succeeded(command: &str, ran: Ran) -> Result<String, Failure> {
    ensure!(ran.metadata.exit_code == 0, "`{command}` came to {ran:?}");
    Ok(ran.content)
}
