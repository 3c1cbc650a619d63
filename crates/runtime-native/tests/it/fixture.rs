//! Runtimes with a state directory of their own.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::mpsc;
use zareba_executor::{FileScope, Linting};
use zareba_protocol::{Action, ActionEvent, ObservationKind, RunCommand, RuntimeStatus, ShellName};
use zareba_runtime::{Runtime, Sandbox, SandboxSpec, Strictness};
use zareba_runtime_native::{
    CliRuntime, DiskLimit, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, Reachable,
    ServerLifetime, SystemMode, Usage, Walls, WorkspaceMode,
};
use zareba_testkit::{conformance::Backend, traces};

/// How long a command may be silent where a test says nothing else.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// A runtime, and where it keeps its sandboxes.
pub(crate) struct Fixture<R> {
    pub(crate) runtime: R,
    pub(crate) state: Arc<TempDir>,
}

impl<R: Runtime> Fixture<R> {
    /// Processes that name the state directory, and what lies in it beside locks.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        leftovers(&self.state)
    }
}

impl<R: Runtime> Backend for Fixture<R> {
    fn runtime(&self) -> &dyn Runtime {
        &self.runtime
    }

    fn traces(&self, mark: &str) -> Vec<String> {
        let mut found = traces::processes(mark);
        found.extend(self.leftovers());
        found
    }
}

pub(crate) fn leftovers(state: &TempDir) -> Vec<String> {
    let mut found = traces::processes(&state.path().display().to_string());
    for kind in ["cli", "local", "native"] {
        let entries = traces::entries(&state.path().join(kind));
        found.extend(entries.into_iter().filter(|path| !path.ends_with("/.lock")));
    }
    found
}

pub(crate) fn state() -> Arc<TempDir> {
    // Short: the path of a Unix socket is limited.
    Arc::new(tempfile::Builder::new().prefix("zr").tempdir().unwrap())
}

pub(crate) fn options(state: &TempDir) -> NativeOptions {
    NativeOptions {
        state_dir: state.path().to_owned(),
        images: state.path().join("images"),
        environment: std::env::vars_os().collect(),
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    }
}

pub(crate) fn cli() -> Fixture<CliRuntime> {
    let state = state();
    let runtime = CliRuntime::new(options(&state));
    Fixture { runtime, state }
}

pub(crate) fn local_options() -> LocalOptions {
    LocalOptions {
        program: program(),
        warm_servers: 0,
        warm_no_change_timeout: SILENCE,
        lifetime: ServerLifetime::WithUs,
    }
}

pub(crate) fn local_with(options_of: LocalOptions) -> Fixture<LocalRuntime> {
    local_in(state(), options_of)
}

/// A second runtime on the same state, as another process would have it.
pub(crate) fn local_in(state: Arc<TempDir>, local: LocalOptions) -> Fixture<LocalRuntime> {
    let runtime = LocalRuntime::new(options(&state), local);
    Fixture { runtime, state }
}

pub(crate) fn local() -> Fixture<LocalRuntime> {
    local_with(local_options())
}

/// The sandbox, with a workspace whose changes reach the machine.
pub(crate) fn native() -> Fixture<NativeRuntime> {
    native_with(walls())
}

pub(crate) fn walls() -> Walls {
    Walls {
        workspace: WorkspaceMode::ReadWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: zareba_runtime_native::HomeAccess::Hidden,
        network: Reachable::Nothing,
        usage: Usage {
            memory_bytes: 512 * 1024 * 1024,
            pids: 256,
            cpu_millis: 2000,
            disk: DiskLimit {
                bytes: 1024 * 1024 * 1024,
                inodes: 100_000,
            },
        },
        strictness: Strictness::Strict,
    }
}

pub(crate) fn native_with(walls: Walls) -> Fixture<NativeRuntime> {
    native_in(state(), local_options(), walls)
}

pub(crate) fn native_by(local: LocalOptions) -> Fixture<NativeRuntime> {
    native_in(state(), local, walls())
}

pub(crate) fn native_in(
    state: Arc<TempDir>,
    local: LocalOptions,
    walls: Walls,
) -> Fixture<NativeRuntime> {
    let runtime = NativeRuntime::new(options(&state), local, walls);
    Fixture { runtime, state }
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: SILENCE,
        timeout: Duration::from_secs(60),
        request: zareba_runtime::SandboxRequest::default(),
        on_status: None,
    }
}

/// A spec whose statuses can be listened to.
pub(crate) fn spec_with_statuses() -> (SandboxSpec, mpsc::Receiver<RuntimeStatus>) {
    let (sender, receiver) = mpsc::channel(64);
    let on_status = move |update: &zareba_runtime::StatusUpdate| {
        let _ = sender.try_send(update.status);
    };
    let spec = SandboxSpec {
        on_status: Some(Arc::new(on_status)),
        ..spec()
    };
    (spec, receiver)
}

/// Waits until a status is told; the test's own deadline ends a vain wait.
pub(crate) async fn told(statuses: &mut mpsc::Receiver<RuntimeStatus>, wanted: RuntimeStatus) {
    while statuses.recv().await.expect("the status is told") != wanted {}
}

/// The output of a command that must succeed.
pub(crate) async fn output(sandbox: &dyn Sandbox, command: &str) -> String {
    output_of(
        sandbox,
        command,
        Action::Run(RunCommand::new(command)).into(),
    )
    .await
}

/// The same in another shell.
pub(crate) async fn output_in(sandbox: &dyn Sandbox, shell: &str, command: &str) -> String {
    let shell = ShellName::new(shell).unwrap();
    let action = ActionEvent::from(Action::Run(RunCommand::new(command))).with_shell(shell);
    output_of(sandbox, command, action).await
}

async fn output_of(sandbox: &dyn Sandbox, command: &str, action: ActionEvent) -> String {
    let answer = sandbox.run_action(action).await.unwrap();
    let observation = answer.observation;
    match &observation.kind {
        ObservationKind::Run(output) if output.metadata.exit_code == 0 => observation.content,
        other => panic!("`{command}` came to {other:?}: {}", observation.content),
    }
}

/// Writes a program by another process: a descriptor of ours that is open for writing, inherited by
/// a fork of another test, would keep it from being started.
pub(crate) fn write_program(path: &Path, text: &str) {
    let status = Command::new("sh")
        .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .arg(text)
        .status()
        .unwrap();
    assert!(status.success());
}

pub(crate) fn program() -> PathBuf {
    let built = || {
        // The test lies in `deps` beside the programs.
        let mut path = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.join("zareba")
    };
    let program = std::env::var_os("ZAREBA_BIN").map_or_else(built, PathBuf::from);
    assert!(
        program.is_file(),
        "there is no `{}`: run `cargo build -p zareba-cli` first, or set ZAREBA_BIN",
        program.display()
    );
    program
}
