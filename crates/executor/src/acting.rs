//! Which module performs which action.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::Notify;
use zareba_protocol::{Action, ActionEvent, Observation, ObservationEvent, ReadSource, RunCommand};

use crate::{
    editor::Editor,
    files::{Files, Reach},
    outputs::{OpenOutput, Outputs},
    search,
    shell::Timeouts,
    shells::Shells,
};

const NO_NOTEBOOK: &str = "JupyterRequirement not found. Unable to run IPython action.";
const NO_BROWSER: &str = "Browser functionality is not supported or disabled.";

/// All that actions need; shared with the tasks of those that belong to nobody.
#[derive(Debug)]
pub(crate) struct Acting {
    pub(crate) shells: Shells,
    pub(crate) tools: Arc<FileTools>,
    pub(crate) no_change_timeout: Duration,
    pub(crate) timeout: Duration,
    /// Told of the end of every action.
    pub(crate) activity: Notify,
    /// What commands write, for readers beside those who wait for them.
    pub(crate) outputs: Outputs,
}

/// What works on files, apart from transfers. Used on threads that may block.
#[derive(Debug)]
pub(crate) struct FileTools {
    pub(crate) files: Files,
    pub(crate) editor: Editor,
    pub(crate) reach: Arc<Reach>,
}

impl Acting {
    /// Performs one action. Dropping the future leaves what it started in a consistent state.
    /// Once it is `enough`, a command is waited for no longer.
    pub(crate) async fn act(&self, event: ActionEvent, enough: &Notify) -> ObservationEvent {
        let observation = self.perform(&event, enough).await;
        self.activity.notify_one();
        ObservationEvent {
            tool_call_metadata: event.tool_call_metadata,
            cause: event.id,
            ..ObservationEvent::from(observation)
        }
    }

    async fn perform(&self, event: &ActionEvent, enough: &Notify) -> Observation {
        match &event.action {
            Action::Run(action) => self.run(event, action, enough).await,
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

    async fn run(&self, event: &ActionEvent, action: &RunCommand, enough: &Notify) -> Observation {
        let timeouts = Timeouts {
            no_change: self.no_change_timeout,
            hard: event.hard_timeout().unwrap_or(self.timeout),
        };
        // Only what has a name can be asked for by others.
        let output = event.once.as_deref().map(|name| self.outputs.open(name));
        let heard = output.as_ref().map(OpenOutput::output);
        let name = event.shell.clone().unwrap_or_default();
        let shell = if action.is_static {
            self.shells.once(action.cwd.as_deref().map(Path::new)).await
        } else {
            self.shells.get(&name).await
        };
        match shell {
            Ok(shell) => shell.run(action, timeouts, enough, heard).await,
            Err(error) => Observation::error(format!("ERROR: {}", crate::shell::chain(&error))),
        }
    }
}
