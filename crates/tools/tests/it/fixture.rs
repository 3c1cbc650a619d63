//! A sandbox of the runtime `cli` with modules of Python in its workspace.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use zareba_executor::{FileScope, Linting};
use zareba_runtime::{Runtime as _, Sandbox, SandboxPlace, SandboxRequest, SandboxSpec};
use zareba_runtime_native::{CliRuntime, NativeOptions};
use zareba_tools::{
    Arguments, Call, Loaded, Place, PythonHost, PythonOptions, Registry, Returned, ToolError,
};

/// The module that most tests load.
const MODULE: &str = include_str!("../modules/sample.py");

/// A sandbox, and the directory that it works in.
pub(crate) struct Bench {
    sandbox: Arc<dyn Sandbox>,
    workspace: TempDir,
    _state: TempDir,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("sample.py"), MODULE).unwrap();
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

    pub(crate) fn place(&self) -> Arc<dyn Place> {
        Arc::new(SandboxPlace(Arc::clone(&self.sandbox)))
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// A registry with what these entrypoints have.
    pub(crate) async fn load(&self, entrypoints: &[&str]) -> (Registry, Loaded) {
        self.load_with(entrypoints, PythonOptions::default()).await
    }

    pub(crate) async fn load_with(
        &self,
        entrypoints: &[&str],
        options: PythonOptions,
    ) -> (Registry, Loaded) {
        let entrypoints = entrypoints.iter().map(|text| text.parse().unwrap());
        let started = PythonHost::start(self.place(), entrypoints.collect(), options).await;
        let (host, loaded) = started.unwrap();
        let registry = Registry::new();
        registry.add_all(host.tools()).unwrap();
        (registry, loaded)
    }

    /// Ends the sandbox.
    pub(crate) async fn close(self) {
        self.sandbox.close().await.unwrap();
    }
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

/// A call by name.
pub(crate) fn named(arguments: Value) -> Call {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Call::new(Arguments::named(arguments))
}

/// What a tool returns.
pub(crate) async fn value(registry: &Registry, tool: &str, arguments: Value) -> Value {
    returned(registry, tool, arguments).await.unwrap().value()
}

pub(crate) async fn returned(
    registry: &Registry,
    tool: &str,
    arguments: Value,
) -> Result<Returned, ToolError> {
    registry.call(tool, named(arguments)).await
}
