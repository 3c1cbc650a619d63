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
use zareba_protocol::{Action, ActionEvent, Observation, ObservationEvent, ShellName};
use zareba_terminal::Size;

use crate::{
    Linting, OpenShellError, OpenWorkspaceError, Owner, User,
    acting::{Acting, FileTools},
    editor::{Editor, EditorSettings},
    files::{Files, Reach, Workspace, WorkspaceSettings},
    once::Once,
    outputs::Outputs,
    programs::{ProgramSpec, Programs},
    raw::RawFiles,
    shell::{Identity, ShellSpec},
    shells::Shells,
    transfer::Transfers,
    variables::SharedVariables,
};

/// The size of a shell's terminal: wide and high, so that nothing an agent reads is wrapped
/// or scrolled for the sake of a window that nobody looks at.
const TERMINAL: Size = Size {
    columns: 1000,
    rows: 1000,
};

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
    pub(crate) acting: Arc<Acting>,
    pub(crate) programs: Programs,
    pub(crate) raw: RawFiles,
    pub(crate) transfers: Transfers,
    /// What clients have set since the start.
    pub(crate) variables: SharedVariables,
    once: Once,
    owner: Owner,
    /// Removed with us when it is ours.
    _state: StateDirectory,
}

#[derive(Debug)]
enum StateDirectory {
    Given(PathBuf),
    Own(TempDir),
}

impl Executor {
    /// Who the files belong to that are made for the agent.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Starts an executor and its first shell. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When a directory cannot be used or no shell starts; nothing is left behind.
    pub async fn start(options: ExecutorOptions) -> Result<Self, StartExecutorError> {
        let executor = Self::prepare(options)?;
        executor.begin(|| {}).await?;
        Ok(executor)
    }

    /// Makes everything but the first shell. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When a directory cannot be used.
    pub fn prepare(options: ExecutorOptions) -> Result<Self, StartExecutorError> {
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
        let variables = SharedVariables::default();
        let programs = Programs::new(ProgramSpec {
            shell: options.shell.clone(),
            environment: options.environment.clone(),
            variables: variables.clone(),
            credentials: options.user.credentials(),
            directory: working_dir.clone(),
        });
        let spec = ShellSpec {
            program: options.shell,
            environment: options.environment,
            variables: variables.clone(),
            credentials: options.user.credentials(),
            size: TERMINAL,
            outputs: state.path().join("outputs"),
            owner,
        };
        let identity = Identity {
            username: options.user.name,
            hostname: hostname(),
        };
        let transfers = Transfers::within(Arc::clone(&reach), owner);
        let raw = RawFiles::new(Arc::clone(&workspace), Arc::clone(&reach));
        let acting = Acting {
            shells: Shells::new(spec, &working_dir, identity),
            tools: Arc::new(FileTools {
                files: Files::new(Arc::clone(&workspace)),
                editor: Editor::new(workspace, editor),
                reach,
            }),
            no_change_timeout: options.no_change_timeout,
            timeout: options.timeout,
            activity: Notify::new(),
            outputs: Outputs::default(),
        };
        Ok(Self {
            acting: Arc::new(acting),
            programs,
            raw,
            transfers,
            variables,
            once: Once::default(),
            owner,
            _state: state,
        })
    }

    /// Starts the first shell. `ready` is called as soon as actions can be asked for, which is a
    /// little before this returns; not at all when there is a first shell already.
    ///
    /// # Errors
    /// When no shell starts.
    pub async fn begin(
        &self,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartExecutorError> {
        let first = ShellName::default();
        let opened = self.acting.shells.open(&first, ready).await;
        opened.map(drop).map_err(StartExecutorError::Shell)
    }

    /// Runs one action. Dropping the future leaves what it started in a consistent state: a
    /// command goes on, as after a timeout, and a file is the old or the new one. An action with
    /// a name to run once under is not even given up by that, but by asking once more under the
    /// same name with a timeout of zero.
    pub async fn execute(&self, event: ActionEvent) -> ObservationEvent {
        let enough = Arc::new(Notify::new());
        let Some(name) = event.once.clone() else {
            return self.acting.act(event, &enough).await;
        };
        if event.hard_timeout() == Some(Duration::ZERO) {
            self.once.hurry(&name);
            if is_nothing(&event.action) && !self.once.knows(&name) {
                return Observation::null().into();
            }
        }
        let (acting, heard) = (Arc::clone(&self.acting), Arc::clone(&enough));
        let work = async move { acting.act(event, &heard).await };
        self.once.run_until(name, enough, work).await
    }

    /// Waits for an action to end that no other follows within `silence`.
    pub async fn quiet(&self, silence: Duration) {
        self.acting.activity.notified().await;
        while tokio::time::timeout(silence, self.acting.activity.notified())
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
        Ok(self.acting.shells.get(shell).await?.subscribe())
    }

    /// Gives a shell's terminal another size.
    ///
    /// # Errors
    /// When there is no such shell and none can be started.
    pub async fn resize(&self, shell: &ShellName, size: Size) -> Result<(), OpenShellError> {
        self.acting.shells.get(shell).await?.resize(size).await;
        Ok(())
    }

    /// Kills all programs, and all shells with what runs in them. What comes later is refused.
    pub async fn shut_down(&self) {
        self.programs.close().await;
        self.acting.shells.close().await;
    }
}

/// Input without a text: whoever sends it under a name only wants that to come to an end.
fn is_nothing(action: &Action) -> bool {
    matches!(action, Action::Run(run) if run.is_input && run.command.is_empty())
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
