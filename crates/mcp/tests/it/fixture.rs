//! A sandbox of the runtime `cli`, as a place for both directions.

use std::{path::Path, sync::Arc, time::Duration};

use rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
};
use serde_json::Value;
use tempfile::TempDir;
use zareba_executor::{FileScope, Linting};
use zareba_mcp::{
    client::{McpServers, Naming, Pins, ServerSpec},
    server::{PlaceError, ServerOptions, ToolServer, Workplace, serve_stdio},
};
use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_runtime::{
    ChangesRequest, Runtime as _, Sandbox, SandboxPlace, SandboxRequest, SandboxSpec,
};
use zareba_runtime_native::{CliRuntime, NativeOptions};
use zareba_tools::Place;
use zareba_wire::BoxFuture;

/// A server written by hand; its first argument says how it behaves.
const SERVER: &str = include_str!("../servers/server.py");

/// A sandbox, and the directory that it works in.
pub(crate) struct Bench {
    sandbox: Arc<dyn Sandbox>,
    workspace: TempDir,
    _state: TempDir,
}

/// The sandbox as the place that our server drives.
struct Driven(Arc<dyn Sandbox>);

impl Workplace for Driven {
    fn workspace(&self) -> String {
        self.0.workspace().to_string_lossy().into_owned()
    }

    fn run(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, PlaceError>> {
        Box::pin(async move { Ok(self.0.run_action(action).await?) })
    }

    fn patch(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<u8>, PlaceError>> {
        Box::pin(async move { Ok(self.0.patch(ChangesRequest { path }).await?.bytes) })
    }

    fn list(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, PlaceError>> {
        Box::pin(async move { Ok(self.0.list_files(path).await?) })
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("server.py"), SERVER).unwrap();
        let runtime = CliRuntime::new(options(state.path()));
        let spec = SandboxSpec {
            id: None,
            image: None,
            workspace: Some(workspace.path().to_owned()),
            environment: Vec::new(),
            no_change_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(60),
            request: SandboxRequest::default(),
            on_status: None,
        };
        Self {
            sandbox: runtime.create(spec).await.unwrap(),
            workspace,
            _state: state,
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.workspace.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    /// Waits for a file that a program makes.
    pub(crate) async fn until_there(&self, name: &str) {
        let path = self.path(name);
        let there = async {
            while !Path::new(&path).exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), there).await;
        waited.unwrap_or_else(|_| panic!("there is no `{name}`"));
    }

    pub(crate) fn place(&self) -> Arc<dyn Place> {
        Arc::new(SandboxPlace(Arc::clone(&self.sandbox)))
    }

    pub(crate) fn server(&self) -> ToolServer {
        let options = ServerOptions {
            version: "1".to_owned(),
            remarks: None,
        };
        ToolServer::new(Arc::new(Driven(Arc::clone(&self.sandbox))), options)
    }

    /// A client of the official SDK, connected to our server by a pipe.
    pub(crate) async fn client(&self) -> RunningService<RoleClient, ()> {
        connect(self.server()).await
    }

    /// Servers of `server.py`, each with the behaviour of its name.
    pub(crate) async fn servers(&self, behaviours: &[&str], pins: Pins) -> McpServers {
        let specs = behaviours
            .iter()
            .map(|name| self.spec(name, name))
            .collect();
        McpServers::connect(specs, Some(self.place()), pins, Naming::Prefixed).await
    }

    pub(crate) fn spec(&self, name: &str, behaviour: &str) -> ServerSpec {
        let arguments = vec![self.path("server.py"), behaviour.to_owned()];
        let spec = ServerSpec::program(name, "python3", arguments, Vec::new());
        spec.unwrap().with_timeout(Duration::from_secs(20))
    }

    pub(crate) async fn close(self) {
        self.sandbox.close().await.unwrap();
    }
}

pub(crate) async fn connect(server: ToolServer) -> RunningService<RoleClient, ()> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let (input, output) = tokio::io::split(ours);
        serve_stdio(server, input, output).await
    });
    ().serve(theirs).await.unwrap()
}

/// Calls a tool.
pub(crate) async fn call(
    client: &RunningService<RoleClient, ()>,
    name: &'static str,
    arguments: Value,
) -> CallToolResult {
    let arguments = arguments.as_object().cloned().unwrap();
    let request = CallToolRequestParams::new(name).with_arguments(arguments);
    client.call_tool(request).await.unwrap()
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> String {
    let result = serde_json::to_value(result).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn options(state: &Path) -> NativeOptions {
    let environment = std::env::vars_os().filter(|(name, _)| name != "HOME");
    let home = state.join("home");
    std::fs::create_dir_all(&home).unwrap();
    // Programs of pyenv and its like are found through HOME, so that it keeps pointing there.
    let pyenv = std::env::var_os("PYENV_ROOT")
        .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".pyenv").into()));
    let pyenv = pyenv.map(|root| ("PYENV_ROOT".into(), root));
    let environment = environment
        .chain([("HOME".into(), home.into())])
        .chain(pyenv);
    NativeOptions {
        state_dir: state.to_owned(),
        images: state.join("images"),
        environment: environment.collect(),
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    }
}
