//! Runtimes with a state directory of their own, and what they leave on the Engine.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::mpsc;
use zareba_protocol::{Action, ActionEvent, ObservationKind, RunCommand, RuntimeStatus};
use zareba_runtime::{Runtime, Sandbox, SandboxSpec};
use zareba_runtime_docker::{DockerOptions, DockerRuntime, EngineAddress, WorkspaceOwnership};
use zareba_testkit::{conformance::Backend, traces};

pub(crate) const BUSYBOX: &str = "zareba-test/busybox";
pub(crate) const DEBIAN: &str = "zareba-test/debian";

/// A runtime, and where it keeps its sandboxes.
pub(crate) struct Fixture {
    pub(crate) runtime: DockerRuntime,
    pub(crate) state: Arc<TempDir>,
    socket: PathBuf,
}

pub(crate) fn fixture(image: &str) -> Fixture {
    fixture_with(image, |_| {})
}

pub(crate) fn fixture_with(image: &str, change: impl FnOnce(&mut DockerOptions)) -> Fixture {
    fixture_in(state(), image, change)
}

/// A second runtime on the same state, as another process would have it.
pub(crate) fn fixture_in(
    state: Arc<TempDir>,
    image: &str,
    change: impl FnOnce(&mut DockerOptions),
) -> Fixture {
    let mut options = options(&state, image);
    change(&mut options);
    let socket = match &options.engine {
        EngineAddress::Unix(path) => path.clone(),
        EngineAddress::Tcp { .. } | EngineAddress::Ssh(_) => engine_socket(),
    };
    Fixture {
        runtime: DockerRuntime::new(options).unwrap(),
        state,
        socket,
    }
}

pub(crate) fn state() -> Arc<TempDir> {
    Arc::new(tempfile::Builder::new().prefix("zr").tempdir().unwrap())
}

pub(crate) fn options(state: &TempDir, image: &str) -> DockerOptions {
    let engine = EngineAddress::Unix(engine_socket());
    let mut options = DockerOptions::hardened(engine, state.path().to_owned(), program());
    options.image = Some(image.to_owned());
    // Directories of these tests are root's, and programs inside never are.
    options.ownership = WorkspaceOwnership::Given;
    options
}

impl Fixture {
    /// What is on the Engine of this installation, and what lies in its directory.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        leftovers(self.state.path(), &self.socket)
    }

    /// Volumes with our program, of Engines that are told to be elsewhere. They stay.
    pub(crate) fn programs(&self) -> Vec<String> {
        programs(self.state.path(), &self.socket)
    }

    /// Does something to the Engine behind our back.
    pub(crate) fn docker(&self, arguments: &[&str]) -> String {
        docker_at(&self.socket, arguments)
    }

    /// Reads along until a container has written these words to its standard error.
    pub(crate) fn await_log(&self, container: &str, words: &str) {
        let mut logs = Command::new("docker")
            .arg("--host")
            .arg(format!("unix://{}", self.socket.display()))
            .args(["logs", "--follow", container])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(logs.stderr.take().unwrap()).lines();
        let mut said: Vec<String> = Vec::new();
        for line in lines.map_while(Result::ok) {
            said.push(line);
            if said.iter().any(|line| line.contains(words)) {
                break;
            }
        }
        let _ = logs.kill();
        logs.wait().unwrap();
        assert!(said.iter().any(|line| line.contains(words)), "{said:#?}");
    }

    pub(crate) async fn sandbox(&self) -> Arc<dyn Sandbox> {
        self.runtime.create(spec()).await.unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // The last of those who share a state takes them along.
        if Arc::strong_count(&self.state) > 1 || std::thread::panicking() {
            return;
        }
        for volume in self.programs() {
            self.docker(&["volume", "rm", &volume]);
        }
    }
}

impl Backend for Fixture {
    fn runtime(&self) -> &dyn Runtime {
        &self.runtime
    }

    fn traces(&self, mark: &str) -> Vec<String> {
        let mut found = traces::processes(mark);
        found.extend(self.leftovers());
        found
    }
}

/// What is on an Engine of the installation with this state, and what lies in its directory.
pub(crate) fn leftovers(state: &Path, socket: &Path) -> Vec<String> {
    let kind = state.join("docker");
    let owner = std::fs::read_to_string(kind.join(".instance")).unwrap();
    let label = format!("label=dev.zareba.owner={owner}");
    let mut found = Vec::new();
    for list in [
        &["ps", "--all", "--quiet"][..],
        &["network", "ls", "--quiet"],
        &["volume", "ls", "--quiet"],
    ] {
        let mut arguments = list.to_vec();
        arguments.extend(["--filter", &label]);
        let text = docker_at(socket, &arguments);
        found.extend(text.lines().map(|line| format!("{}: {line}", list[0])));
    }
    found.retain(|item| !item.contains(": zareba-program-"));
    let entries = traces::entries(&kind).into_iter();
    found.extend(entries.filter(|path| !path.contains("/docker/.")));
    found
}

/// Volumes with our program that the installation with this state has on an Engine.
pub(crate) fn programs(state: &Path, socket: &Path) -> Vec<String> {
    let Ok(owner) = std::fs::read_to_string(state.join("docker/.instance")) else {
        return Vec::new();
    };
    let label = format!("label=dev.zareba.program={owner}");
    let listed = docker_at(socket, &["volume", "ls", "--quiet", "--filter", &label]);
    listed.lines().map(str::to_owned).collect()
}

pub(crate) fn docker_at(socket: &Path, arguments: &[&str]) -> String {
    let output = Command::new("docker")
        .arg("--host")
        .arg(format!("unix://{}", socket.display()))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "docker {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn container(sandbox: &dyn Sandbox) -> String {
    format!("openhands-runtime-{}", sandbox.id())
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: Duration::from_secs(10),
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

/// Waits until a status is told.
pub(crate) async fn told(statuses: &mut mpsc::Receiver<RuntimeStatus>, wanted: RuntimeStatus) {
    while statuses.recv().await.expect("the status is told") != wanted {}
}

/// The status of a command that ended, and what it wrote.
pub(crate) async fn run(sandbox: &dyn Sandbox, command: &str) -> (i64, String) {
    let command = RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    };
    let action = ActionEvent::from(Action::Run(command));
    let observation = sandbox.run_action(action).await.unwrap().observation;
    match observation.kind {
        ObservationKind::Run(output) => (output.metadata.exit_code, observation.content),
        other => panic!("{other:?}: {}", observation.content),
    }
}

/// The output of a command that must succeed.
pub(crate) async fn output(sandbox: &dyn Sandbox, command: &str) -> String {
    let (code, content) = run(sandbox, command).await;
    assert_eq!(code, 0, "`{command}` came to {content}");
    content
}

pub(crate) fn engine_socket() -> PathBuf {
    let socket = std::env::var_os("ZAREBA_TEST_DOCKER");
    PathBuf::from(
        socket.expect(
            "ZAREBA_TEST_DOCKER must name the socket of an Engine: run scripts/docker-tests",
        ),
    )
}

pub(crate) fn program() -> PathBuf {
    let program = std::env::var_os("ZAREBA_STATIC_BIN");
    PathBuf::from(
        program.expect("ZAREBA_STATIC_BIN must name a static `zareba`: run scripts/docker-tests"),
    )
}
