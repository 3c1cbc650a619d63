//! The executor: one place that takes actions and answers with observations.

use std::{
    ffi::OsString,
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::{Notify, broadcast};
use zareba_protocol::{
    Action, ActionEvent, Observation, ObservationEvent, ReadSource, RunCommand, ShellName,
};
use zareba_terminal::Size;

use crate::{
    Linting, OpenShellError, OpenWorkspaceError, User,
    editor::{Editor, EditorSettings},
    files::{Files, Reach, Workspace, WorkspaceSettings},
    programs::{ProgramSpec, Programs},
    search,
    shell::{Identity, ShellSpec, Timeouts},
    shells::Shells,
    transfer::Transfers,
};

/// The size of a shell's terminal: wide and high, so that nothing an agent reads is wrapped
/// or scrolled for the sake of a window that nobody looks at.
const TERMINAL: Size = Size {
    columns: 1000,
    rows: 1000,
};

const NO_NOTEBOOK: &str = "JupyterRequirement not found. Unable to run IPython action.";
const NO_BROWSER: &str = "Browser functionality is not supported or disabled.";

/// What an executor is started with.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// Where shells start; made when missing.
    pub working_dir: PathBuf,
    /// Who shells run as and files belong to.
    pub user: User,
    /// The whole environment of shells; see [`crate::shell_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// The shell; `None` looks for bash and then for sh.
    pub shell: Option<PathBuf>,
    /// How long a command may be silent before the agent is told, unless it blocks.
    pub no_change_timeout: Duration,
    /// How long an action may take that does not say so itself.
    pub timeout: Duration,
    /// What file actions, searches, listings, uploads and downloads may reach.
    pub scope: FileScope,
    /// Whether edited files are checked.
    pub linting: Linting,
    /// Where the undo history and long outputs are kept; `None` is a place that goes with us.
    pub state_dir: Option<PathBuf>,
}

/// What file actions, searches, listings, uploads and downloads may reach. Shells are not meant:
/// what runs in them is held by the sandbox alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileScope {
    /// Whatever the process may; the sandbox around it is the wall.
    WholeFilesystem,
    /// Only what is in the working directory.
    WorkingDirectory,
}

/// Why an executor cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartExecutorError {
    /// The working directory cannot be made or given to its user.
    #[error("cannot prepare the working directory `{path}`", path = path.display())]
    WorkingDirectory {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no place for the undo history and long outputs.
    #[error("cannot prepare the state directory")]
    StateDirectory(#[source] io::Error),
    /// The workspace root cannot be opened.
    #[error(transparent)]
    Workspace(#[from] OpenWorkspaceError),
    /// The first shell does not start.
    #[error("cannot start the first shell")]
    Shell(#[source] OpenShellError),
}

/// Takes actions and answers each with one observation.
#[derive(Debug)]
pub struct Executor {
    pub(crate) shells: Shells,
    pub(crate) programs: Programs,
    pub(crate) tools: Arc<FileTools>,
    pub(crate) transfers: Transfers,
    no_change_timeout: Duration,
    timeout: Duration,
    /// Told of the end of every action.
    activity: Notify,
    /// Removed with us when it is ours.
    _state: StateDirectory,
}

/// What works on files, apart from transfers. Used on threads that may block.
#[derive(Debug)]
pub(crate) struct FileTools {
    pub(crate) files: Files,
    editor: Editor,
    reach: Arc<Reach>,
}

#[derive(Debug)]
enum StateDirectory {
    Given(PathBuf),
    Own(TempDir),
}

impl Executor {
    /// Starts an executor and its first shell. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When a directory cannot be used or no shell starts; nothing is left behind.
    pub async fn start(options: ExecutorOptions) -> Result<Self, StartExecutorError> {
        let working_dir = prepare_working_directory(&options)?;
        let state =
            StateDirectory::prepare(&options).map_err(StartExecutorError::StateDirectory)?;
        let owner = options.user.owner();
        let reach = Arc::new(match options.scope {
            FileScope::WholeFilesystem => Reach::WholeFilesystem,
            FileScope::WorkingDirectory => Reach::beneath(&working_dir)?,
        });
        let settings = WorkspaceSettings {
            working_dir: working_dir.clone(),
            reach: Arc::clone(&reach),
            owner,
        };
        let workspace = Arc::new(Workspace::new(settings));
        let editor = EditorSettings {
            history_dir: state.path().join("undo"),
            linting: options.linting,
        };
        let programs = Programs::new(ProgramSpec {
            shell: options.shell.clone(),
            environment: options.environment.clone(),
            credentials: options.user.credentials(),
            directory: working_dir.clone(),
        });
        let spec = ShellSpec {
            program: options.shell,
            environment: options.environment,
            credentials: options.user.credentials(),
            size: TERMINAL,
            outputs: state.path().join("outputs"),
            owner,
        };
        let identity = Identity {
            username: options.user.name,
            hostname: hostname(),
        };
        let executor = Self {
            shells: Shells::new(spec, &working_dir, identity),
            programs,
            transfers: Transfers::within(Arc::clone(&reach), owner),
            tools: Arc::new(FileTools {
                files: Files::new(Arc::clone(&workspace)),
                editor: Editor::new(workspace, editor),
                reach,
            }),
            no_change_timeout: options.no_change_timeout,
            timeout: options.timeout,
            activity: Notify::new(),
            _state: state,
        };
        executor
            .shells
            .get(&ShellName::default())
            .await
            .map_err(StartExecutorError::Shell)?;
        Ok(executor)
    }

    /// Runs one action. Dropping the future leaves what it started in a consistent state: a
    /// command goes on, as after a timeout, and a file is the old or the new one.
    pub async fn execute(&self, event: ActionEvent) -> ObservationEvent {
        let observation = self.perform(&event).await;
        self.activity.notify_one();
        ObservationEvent {
            tool_call_metadata: event.tool_call_metadata,
            cause: event.id,
            ..ObservationEvent::from(observation)
        }
    }

    /// Waits for an action to end that no other follows within `silence`.
    pub async fn quiet(&self, silence: Duration) {
        self.activity.notified().await;
        while tokio::time::timeout(silence, self.activity.notified())
            .await
            .is_ok()
        {}
    }

    /// What the programs in a shell write, as it comes; the shell is started when it is not
    /// there yet. A reader that falls behind loses the oldest pieces and is told.
    ///
    /// # Errors
    /// When there is no such shell and none can be started.
    pub async fn follow(
        &self,
        shell: &ShellName,
    ) -> Result<broadcast::Receiver<Bytes>, OpenShellError> {
        Ok(self.shells.get(shell).await?.subscribe())
    }

    /// Gives a shell's terminal another size.
    ///
    /// # Errors
    /// When there is no such shell and none can be started.
    pub async fn resize(&self, shell: &ShellName, size: Size) -> Result<(), OpenShellError> {
        self.shells.get(shell).await?.resize(size).await;
        Ok(())
    }

    /// Kills all programs, and all shells with what runs in them. What comes later is refused.
    pub async fn shut_down(&self) {
        self.programs.close().await;
        self.shells.close().await;
    }

    async fn perform(&self, event: &ActionEvent) -> Observation {
        match &event.action {
            Action::Run(action) => self.run(event, action).await,
            Action::Read(action) => {
                let action = action.clone();
                self.off_thread(move |tools, cwd| match action.impl_source {
                    ReadSource::Plain => tools.files.read(&action, cwd),
                    ReadSource::Editor => tools.editor.view_for_read(&action),
                })
                .await
            }
            Action::Write(action) => {
                let action = action.clone();
                self.off_thread(move |tools, cwd| tools.files.write(&action, cwd))
                    .await
            }
            Action::Edit(action) => {
                let action = action.clone();
                self.off_thread(move |tools, _| tools.editor.edit(&action))
                    .await
            }
            Action::Glob(action) => {
                let action = action.clone();
                self.off_thread(move |tools, cwd| search::glob(&action, cwd, &tools.reach))
                    .await
            }
            Action::Grep(action) => {
                let action = action.clone();
                self.off_thread(move |tools, cwd| search::grep(&action, cwd, &tools.reach))
                    .await
            }
            Action::RunIpython(_) => Observation::error(NO_NOTEBOOK),
            Action::Browse(_) | Action::BrowseInteractive(_) => Observation::error(NO_BROWSER),
            other => match other.require_executable() {
                Ok(()) => Observation::error(format!(
                    "Action {} is not supported in the current runtime.",
                    other.kind()
                )),
                Err(error) => Observation::error(error.to_string()),
            },
        }
    }

    /// Runs file work on a thread that may block, with the directory that relative paths are
    /// meant from. A panic there is this action's alone.
    async fn off_thread(
        &self,
        work: impl FnOnce(&FileTools, &Path) -> Observation + Send + 'static,
    ) -> Observation {
        let (tools, cwd) = (Arc::clone(&self.tools), self.shells.directory());
        match tokio::task::spawn_blocking(move || work(&tools, &cwd)).await {
            Ok(observation) => observation,
            Err(_) => Observation::error(
                "ERROR: The action failed by a fault in the executor; other actions still work.",
            ),
        }
    }

    async fn run(&self, event: &ActionEvent, action: &RunCommand) -> Observation {
        let timeouts = Timeouts {
            no_change: self.no_change_timeout,
            hard: event.hard_timeout().unwrap_or(self.timeout),
        };
        let name = event.shell.clone().unwrap_or_default();
        let shell = if action.is_static {
            self.shells.once(action.cwd.as_deref().map(Path::new)).await
        } else {
            self.shells.get(&name).await
        };
        match shell {
            Ok(shell) => shell.run(action, timeouts).await,
            Err(error) => Observation::error(format!("ERROR: {}", crate::shell::chain(&error))),
        }
    }
}

fn prepare_working_directory(options: &ExecutorOptions) -> Result<PathBuf, StartExecutorError> {
    let path = options.working_dir.clone();
    let failed = |source| StartExecutorError::WorkingDirectory {
        path: path.clone(),
        source,
    };
    let existed = path.is_dir();
    std::fs::create_dir_all(&path).map_err(failed)?;
    if !existed {
        let directory = std::fs::File::open(&path).map_err(failed)?;
        options
            .user
            .owner()
            .give(&directory)
            .map_err(|errno| failed(errno.into()))?;
    }
    // Absolute, with links in the way resolved, as a shell will report it.
    std::fs::canonicalize(&path).map_err(failed)
}

impl StateDirectory {
    fn prepare(options: &ExecutorOptions) -> io::Result<Self> {
        let state = match &options.state_dir {
            Some(path) => {
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o711)
                    .create(path)?;
                Self::Given(path.clone())
            }
            None => Self::Own(tempfile::Builder::new().prefix("zareba-").tempdir()?),
        };
        // Another user's shells must be able to pass, not to look around.
        std::fs::set_permissions(state.path(), std::fs::Permissions::from_mode(0o711))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(state.path().join("outputs"))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state.path().join("undo"))?;
        Ok(state)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Own(directory) => directory.path(),
        }
    }
}

fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
