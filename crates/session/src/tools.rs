//! The tools of a session: what was added, what is kept of that, and how they are called.
//!
//! A call is an action like any other: recorded, judged, and answered once. Only its deed is not
//! the executor's: the registry calls the tool, whose host runs in the sandbox.

mod add;
mod call;
mod hidden;
mod place;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as Exclusive;
use zareba_tools::{
    CommandTool, CommandToolSpec, Entrypoint, LoadFailure, Place, PythonHost, PythonOptions,
    Registry, Tool, ToolDefinition, ToolError, ToolName,
};

use crate::{Deed, Door, Requester, SessionError, conductor::Conductor};
use place::SessionPlace;

pub use add::HOSTS_MAX;
pub(crate) use call::{CallGuard, is_call, is_call_action, unknown};
pub use source::{ToolSource, ToolSupply};

/// Tools that are to be added to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTools {
    /// Functions and toolkits of Python. One interpreter hosts all of them.
    pub entrypoints: Vec<Entrypoint>,
    /// The interpreter: a name to look for, or the path of one; `python3` when absent.
    pub python: Option<String>,
    /// Variables of the interpreter. They are kept with the session, so that none of them may hold
    /// one of its secrets.
    pub environment: Vec<(String, String)>,
    /// Where the interpreter starts; the workspace when absent.
    pub directory: Option<String>,
    /// Calls of functions that are not `async` which run at once.
    pub threads: Option<usize>,
    /// Commands.
    pub commands: Vec<CommandToolSpec>,
}

/// What came of adding tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolsAdded {
    /// The tools that were added.
    pub tools: Vec<ToolDefinition>,
    /// Entrypoints that made a toolkit.
    pub toolkits: Vec<String>,
    /// Entrypoints that could not be loaded.
    pub failures: Vec<LoadFailure>,
}

/// Tools as they are kept with a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptTools {
    new: NewTools,
    toolkits: Vec<String>,
    /// Those that are still there. With them nothing has to be started before the first call.
    tools: Vec<ToolDefinition>,
}

/// What a session has of tools.
pub(crate) struct Toolbox {
    registry: Registry,
    kept: Mutex<Kept>,
    /// Where those come from that every session has, from when they were needed first.
    supply: OnceLock<Arc<dyn ToolSupply>>,
    /// Held by the one who asks there.
    looking: Exclusive<()>,
}

/// What was added, and how many are being added.
struct Kept {
    tools: Vec<KeptTools>,
    reserved: usize,
}

/// The tools of a session, for those who add, list and remove them.
#[derive(Clone)]
pub struct SessionTools {
    conductor: Arc<Conductor>,
    /// The client whose hosts are started; `None` is the session itself.
    requester: Option<Requester>,
}

impl Toolbox {
    pub(crate) fn new(kept: Vec<KeptTools>) -> Self {
        Self {
            registry: Registry::new(),
            kept: Mutex::new(Kept {
                tools: kept,
                reserved: 0,
            }),
            supply: OnceLock::new(),
            looking: Exclusive::default(),
        }
    }

    pub(crate) fn kept(&self) -> Vec<KeptTools> {
        self.lock().tools.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTools {
    pub(crate) fn of(conductor: Arc<Conductor>) -> Self {
        Self {
            conductor,
            requester: None,
        }
    }

    /// The same for a client, which the log names beside the hosts that it starts.
    #[must_use]
    pub fn on_behalf_of(self, requester: Requester) -> Self {
        Self {
            requester: Some(requester),
            ..self
        }
    }

    /// All of them, to add tools of other kinds to, which are not kept with the session. Calls
    /// belong on the path of actions, which judges and records them.
    pub fn registry(&self) -> &Registry {
        &self.conductor.tools.registry
    }

    /// Where hosts of tools run: the session's sandbox, which is woken for that.
    pub fn place(&self) -> Arc<dyn Place> {
        Arc::new(SessionPlace::of(&self.conductor, self.requester.clone()))
    }

    /// Waits for the tools that every session has, which are there when something first needs them.
    pub async fn sourced(&self) -> &Self {
        if self.conductor.require_unclosed("use its tools").is_ok() {
            self.conductor.source_tools().await;
        }
        self
    }

    /// All tools, in the order in which they were added, with secrets hidden in what is said of
    /// them.
    pub fn list(&self) -> Vec<ToolDefinition> {
        let tools = self.registry().list().into_iter();
        let mask = &self.conductor.mask;
        tools.map(|tool| hidden::definition(mask, tool)).collect()
    }

    /// Entrypoints that made a toolkit.
    pub fn toolkits(&self) -> Vec<String> {
        let kept = self.conductor.tools.kept();
        kept.into_iter().flat_map(|kept| kept.toolkits).collect()
    }

    /// Removes a tool. Calls that are under way go on; an interpreter ends with its last tool.
    ///
    /// # Errors
    /// When there is none of that name, the guard denies it, or it cannot be written down.
    pub async fn remove(&self, name: &ToolName) -> Result<(), SessionError> {
        self.conductor.require_unclosed("change its tools")?;
        let deed = Deed::RemoveTool {
            name: name.to_string(),
        };
        self.admitted(deed, self.remove_now(name)).await
    }

    async fn admitted(
        &self,
        deed: Deed,
        work: impl Future<Output = Result<(), SessionError>>,
    ) -> Result<(), SessionError> {
        let requester = self.conductor.requester(self.requester.clone());
        let door = Door::of_session(&self.conductor, requester);
        let word = |error: &SessionError| error.class().as_str();
        door.carry_out(deed, word, work).await
    }

    async fn remove_now(&self, name: &ToolName) -> Result<(), SessionError> {
        if self.registry().remove(name).is_none() {
            let known = self.list().into_iter().map(|tool| tool.name.to_string());
            return Err(ToolError::NotFound {
                name: name.to_string(),
                known: known.take(20).collect(),
            }
            .into());
        }
        {
            let mut kept = self.conductor.tools.lock();
            for one in &mut kept.tools {
                one.tools.retain(|tool| tool.name != *name);
            }
            kept.tools.retain(|one| !one.tools.is_empty());
        }
        // Also when whoever asked goes away: it must not be back after a restart.
        let session = Arc::clone(&self.conductor);
        let written = tokio::spawn(async move { session.write_down().await }).await;
        Ok(written.map_err(|_| SessionError::ShuttingDown)??)
    }

    /// Has every host begin anew: state that tools have kept is as it was at first.
    ///
    /// # Errors
    /// When a host cannot be started again, or the guard denies it.
    pub async fn reset(&self) -> Result<(), SessionError> {
        self.conductor.require_unclosed("reset its tools")?;
        let _in_use = self.conductor.begin_use();
        let reset = async {
            let reset = self.registry().reset().await;
            Ok(reset.map_err(|error| hidden::error(&self.conductor.mask, error))?)
        };
        self.admitted(Deed::ResetTools, reset).await
    }
}

impl Conductor {
    /// Puts the tools back that an earlier server had. Nothing is started before the first call.
    pub(crate) fn restore_tools(self: &Arc<Self>) {
        let place: Arc<dyn Place> = Arc::new(SessionPlace::of(self, None));
        for kept in self.tools.kept() {
            let restored = restored(&place, kept);
            let added = restored.and_then(|tools| self.tools.registry.add_all(tools));
            if let Err(error) = added {
                tracing::warn!(session = %self.id, %error, "tools of a session cannot be put back");
            }
        }
    }
}

fn restored(place: &Arc<dyn Place>, kept: KeptTools) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    let KeptTools { new, tools, .. } = kept;
    let is_there = |name: &ToolName| tools.iter().any(|tool| tool.name == *name);
    let (options, mut specs) = (options(&new), new.commands);
    specs.retain(|spec| is_there(&spec.name));
    let mut restored = commands(place, &specs)?;
    let of_python = |tool: &ToolDefinition| !specs.iter().any(|spec| spec.name == tool.name);
    let of_python: Vec<_> = tools.into_iter().filter(of_python).collect();
    if !of_python.is_empty() {
        let host = PythonHost::asleep(Arc::clone(place), new.entrypoints, options, of_python);
        restored.extend(host.tools());
    }
    Ok(restored)
}

fn commands(
    place: &Arc<dyn Place>,
    specs: &[CommandToolSpec],
) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    let tools = specs.iter().map(|spec| {
        let tool = CommandTool::new(Arc::clone(place), spec.clone())?;
        Ok(Arc::new(tool) as Arc<dyn Tool>)
    });
    tools.collect()
}

fn options(new: &NewTools) -> PythonOptions {
    let default = PythonOptions::default();
    PythonOptions {
        python: new.python.clone().unwrap_or(default.python),
        environment: new.environment.clone(),
        threads: new.threads.unwrap_or(default.threads),
        directory: new.directory.clone(),
        ..default
    }
}

impl std::fmt::Debug for SessionTools {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("SessionTools")
            .field(self.registry())
            .finish()
    }
}
