//! The shells of one executor, by name.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;
use zareba_protocol::ShellName;

use crate::shell::{Identity, Shell, ShellSpec, StartShellError};

/// Shells that one executor keeps at once.
const SHELLS_MAX: usize = 64;

/// Why there is no shell of that name.
#[derive(Debug, thiserror::Error)]
pub enum OpenShellError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartShellError),
    /// There are enough.
    #[error("cannot open the shell `{name}`: {limit} shells are open already; use one of them")]
    TooMany {
        /// The one that was asked for.
        name: ShellName,
        /// How many there may be.
        limit: usize,
    },
    /// A command would run elsewhere than it was meant to.
    #[error("there is no directory `{}` to run the command in", path.display())]
    NoDirectory {
        /// What was asked for.
        path: PathBuf,
    },
    /// The executor is shutting down.
    #[error("the executor is shutting down")]
    Closing,
}

/// Starts shells and finds them again.
#[derive(Debug)]
pub(crate) struct Shells {
    spec: ShellSpec,
    directory: PathBuf,
    identity: Identity,
    /// `None` once they are closed.
    open: Mutex<Option<HashMap<ShellName, Arc<OnceCell<Shell>>>>>,
}

impl Shells {
    pub(crate) fn new(spec: ShellSpec, directory: &Path, identity: Identity) -> Self {
        let open = Mutex::new(Some(HashMap::new()));
        Self {
            spec,
            directory: directory.to_owned(),
            identity,
            open,
        }
    }

    /// The shell `name`, started when it is the first time.
    pub(crate) async fn get(&self, name: &ShellName) -> Result<Shell, OpenShellError> {
        self.open(name, || {}).await
    }

    /// The same; `ready` is called as soon as a shell that had to be started is.
    pub(crate) async fn open(
        &self,
        name: &ShellName,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Shell, OpenShellError> {
        let cell = self.cell(name)?;
        let shell = cell
            .get_or_try_init(|| self.start(name.as_str(), &self.directory, ready))
            .await?;
        Ok(shell.clone())
    }

    /// A shell for one command, in a directory that must be there. A relative one is meant from
    /// where shells start.
    pub(crate) async fn once(&self, directory: Option<&Path>) -> Result<Shell, OpenShellError> {
        let path = directory.map_or_else(
            || self.directory.clone(),
            |directory| self.directory.join(directory),
        );
        if directory.is_some() && !path.is_dir() {
            return Err(OpenShellError::NoDirectory { path });
        }
        let name = format!("static-{:08x}", rand::random::<u32>());
        Ok(self.start(&name, &path, || {}).await?)
    }

    async fn start(
        &self,
        name: &str,
        directory: &Path,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Shell, StartShellError> {
        let (spec, identity) = (self.spec.clone(), self.identity.clone());
        Shell::start(spec, name, directory, identity, ready).await
    }

    /// Where relative paths start: the default shell's directory.
    pub(crate) fn directory(&self) -> PathBuf {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let shell = open
            .as_ref()
            .and_then(|open| open.get(&ShellName::default())?.get());
        shell.map_or_else(|| self.directory.clone(), Shell::directory)
    }

    pub(crate) fn are_open(&self) -> bool {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Kills all shells with what runs in them, and returns when they are gone.
    pub(crate) async fn close(&self) {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        for cell in open.unwrap_or_default().into_values() {
            if let Some(shell) = cell.get() {
                shell.close().await;
            }
        }
    }

    fn cell(&self, name: &ShellName) -> Result<Arc<OnceCell<Shell>>, OpenShellError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.as_mut().ok_or(OpenShellError::Closing)?;
        if !open.contains_key(name) && open.len() >= SHELLS_MAX {
            return Err(OpenShellError::TooMany {
                name: name.clone(),
                limit: SHELLS_MAX,
            });
        }
        Ok(Arc::clone(open.entry(name.clone()).or_default()))
    }
}
