//! The tools of a session: what was added, what is kept of that, and how they are called.
//!
//! A call is an action like any other: recorded, judged, and answered once. Only its deed is not
//! the executor's: the registry calls the tool, whose host runs in the sandbox.

mod place;
mod source;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use zareba_eventlog::Record;
use zareba_protocol::{ErrorClass, ObservationEvent, UseTool};
use zareba_tools::{
    Arguments, Call, CommandTool, CommandToolSpec, Entrypoint, LoadFailure, Place, PythonHost,
    PythonOptions, Registry, Tool, ToolDefinition, ToolError, ToolName, observation,
};

use crate::{SessionError, conductor::Conductor, event};
use place::SessionPlace;

pub use source::ToolSource;

/// How often tools can be added to one session: each time may start an interpreter.
pub const HOSTS_MAX: usize = 32;

/// What is kept of all tools of a session, as JSON: half of what its document may have.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// Tools that are to be added to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTools {
    /// Functions and toolkits of Python. One interpreter hosts all of them.
    pub entrypoints: Vec<Entrypoint>,
    /// The interpreter: a name to look for, or the path of one; `python3` when absent.
    pub python: Option<String>,
    /// Variables of the interpreter. They are kept with the session; secrets belong into the
    /// session's own, which every program in it has.
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
#[derive(Debug)]
pub(crate) struct Toolbox {
    registry: Registry,
    kept: Mutex<Vec<KeptTools>>,
    /// The tools that every session has are there.
    sourced: OnceCell<()>,
}

/// The tools of a session, for those who add, list and remove them.
#[derive(Clone)]
pub struct SessionTools {
    conductor: Arc<Conductor>,
}

impl Toolbox {
    pub(crate) fn new(kept: Vec<KeptTools>) -> Self {
        Self {
            registry: Registry::new(),
            kept: Mutex::new(kept),
            sourced: OnceCell::new(),
        }
    }

    pub(crate) fn kept(&self) -> Vec<KeptTools> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptTools>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTools {
    pub(crate) fn of(conductor: Arc<Conductor>) -> Self {
        Self { conductor }
    }

    /// All of them, to add tools of other kinds to, which are not kept with the session. Calls
    /// belong on the path of actions, which judges and records them.
    pub fn registry(&self) -> &Registry {
        &self.conductor.tools.registry
    }

    /// Where hosts of tools run: the session's sandbox, which is woken for that.
    pub fn place(&self) -> Arc<dyn Place> {
        Arc::new(SessionPlace::of(&self.conductor))
    }

    /// Waits for the tools that every session has, which are there when something first needs them.
    pub async fn sourced(&self) -> &Self {
        if self.conductor.require_unclosed("use its tools").is_ok() {
            self.conductor.source_tools().await;
        }
        self
    }

    /// All tools, in the order in which they were added.
    pub fn list(&self) -> Vec<ToolDefinition> {
        self.registry().list()
    }

    /// Entrypoints that made a toolkit.
    pub fn toolkits(&self) -> Vec<String> {
        let kept = self.conductor.tools.kept();
        kept.into_iter().flat_map(|kept| kept.toolkits).collect()
    }

    /// Adds tools: starts an interpreter when there are entrypoints, and keeps what was added with
    /// the session. Entrypoints that cannot be loaded are told; when none can, nothing is added.
    ///
    /// # Errors
    /// When a name is taken, nothing could be loaded, or what is asked for makes no sense.
    pub async fn add(&self, new: NewTools) -> Result<ToolsAdded, SessionError> {
        self.conductor.require_unclosed("take tools")?;
        let _in_use = self.conductor.begin_use();
        self.check(&new)?;
        let mut added = ToolsAdded::default();
        let mut tools = commands(&self.place(), &new.commands)?;
        if !new.entrypoints.is_empty() {
            let started =
                PythonHost::start(self.place(), new.entrypoints.clone(), options(&new)).await?;
            let (host, loaded) = started;
            tools.extend(host.tools());
            added.toolkits = loaded.toolkits;
            added.failures = loaded.failures;
        }
        if tools.is_empty() {
            return Err(nothing_loaded(&added.failures));
        }
        added.tools = tools.iter().map(|tool| tool.definition().clone()).collect();
        self.registry().add_all(tools)?;
        self.keep(new, &added).await?;
        Ok(added)
    }

    /// Removes a tool. Calls that are under way go on; an interpreter ends with its last tool.
    ///
    /// # Errors
    /// When there is none of that name, or that cannot be written down.
    pub async fn remove(&self, name: &ToolName) -> Result<(), SessionError> {
        self.conductor.require_unclosed("change its tools")?;
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
            for one in kept.iter_mut() {
                one.tools.retain(|tool| tool.name != *name);
            }
            kept.retain(|one| !one.tools.is_empty());
        }
        Ok(self.conductor.write_down().await?)
    }

    /// Has every host begin anew: state that tools have kept is as it was at first.
    ///
    /// # Errors
    /// When a host cannot be started again.
    pub async fn reset(&self) -> Result<(), SessionError> {
        self.conductor.require_unclosed("reset its tools")?;
        let _in_use = self.conductor.begin_use();
        Ok(self.registry().reset().await?)
    }

    fn check(&self, new: &NewTools) -> Result<(), SessionError> {
        let invalid = |message: String| Err(SessionError::Invalid { message });
        if self.conductor.tools.lock().len() >= HOSTS_MAX {
            return Err(SessionError::TooMany {
                message: format!(
                    "tools were added {HOSTS_MAX} times, which is the limit; add several at once, or remove some"
                ),
            });
        }
        if new.entrypoints.is_empty() && new.commands.is_empty() {
            return invalid("there is nothing to add; name an entrypoint or a command".to_owned());
        }
        let hides = |text: &String| self.conductor.mask.hides(text);
        let variables = new.environment.iter();
        if let Some((name, _)) = variables.clone().find(|(_, value)| hides(value)) {
            return invalid(format!(
                "the variable `{name}` holds a secret of the session, which the tools have anyway"
            ));
        }
        let texts = new.entrypoints.iter().map(|it| it.as_str().to_owned());
        if texts.into_iter().any(|text| hides(&text)) {
            return invalid(
                "an entrypoint must not hold a secret; read it from a variable".to_owned(),
            );
        }
        Ok(())
    }

    /// Writes down what was added; what cannot be kept is not added.
    async fn keep(&self, new: NewTools, added: &ToolsAdded) -> Result<(), SessionError> {
        let toolbox = &self.conductor.tools;
        let one = KeptTools {
            new,
            toolkits: added.toolkits.clone(),
            tools: added.tools.clone(),
        };
        toolbox.lock().push(one);
        let bytes = serde_json::to_vec(&toolbox.kept()).map_or(usize::MAX, |text| text.len());
        let written = if bytes > KEPT_BYTES_MAX {
            Err(SessionError::TooMany {
                message: format!(
                    "the descriptions of all tools would have {bytes} bytes, and the limit is {KEPT_BYTES_MAX}"
                ),
            })
        } else {
            self.conductor.write_down().await.map_err(Into::into)
        };
        if written.is_err() {
            toolbox.lock().retain(|it| it.tools != added.tools);
            for tool in &added.tools {
                toolbox.registry.remove(&tool.name);
            }
        }
        written
    }
}

impl Conductor {
    /// Puts the tools back that an earlier server had. Nothing is started before the first call.
    pub(crate) fn restore_tools(self: &Arc<Self>) {
        let place: Arc<dyn Place> = Arc::new(SessionPlace::of(self));
        for kept in self.tools.kept() {
            let restored = restored(&place, kept);
            let added = restored.and_then(|tools| self.tools.registry.add_all(tools));
            if let Err(error) = added {
                tracing::warn!(session = %self.id, %error, "tools of a session cannot be put back");
            }
        }
    }

    /// Calls a tool; `None` when the server ends before anything is known.
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        call: &UseTool,
        timeout: Option<Duration>,
    ) -> Option<ObservationEvent> {
        let run = async {
            // A host that sleeps with its sandbox would not answer.
            if let Err(error) = self.awake().await.map(drop) {
                return event::failure_of(&error);
            }
            if self.tools.registry.get(&call.name).is_none() {
                self.source_tools().await;
            }
            let asked = Call {
                arguments: Arguments {
                    positional: call.positional.clone(),
                    named: call.arguments.clone(),
                },
                timeout: timeout.or(Some(self.common.options.timeout)),
                is_validated: !call.unchecked,
            };
            let result = self.tools.registry.call(&call.name, asked).await;
            observation(&call.name, result).into()
        };
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            answer = run => Some(answer),
            _ = closing.wait_for(|closing| *closing) => Some(unknown("the session was closed while it ran")),
            () = self.letting_go() => None,
        }
    }
}

/// What is said of a call that nobody can say more about.
pub(crate) fn unknown(why: &str) -> ObservationEvent {
    event::failure(
        ErrorClass::Disconnected.as_str(),
        format!(
            "ERROR: The outcome of the tool is unknown: {why}. It may have run, in whole or in part; look before you call it again."
        ),
    )
}

/// Whether a record is of a call of a tool, also when it is not whole.
pub(crate) fn is_call(record: &Record) -> bool {
    let kind = record.payload.get("action").and_then(|kind| kind.as_str());
    matches!(kind, Some("call_tool" | "call_tool_mcp"))
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

fn nothing_loaded(failures: &[LoadFailure]) -> SessionError {
    let message = match failures.first() {
        None => "the entrypoints have no functions; name functions, tools or toolkits".to_owned(),
        Some(failure) => format!(
            "the entrypoint `{}` cannot be loaded: {}: {}",
            failure.entrypoint, failure.kind, failure.message
        ),
    };
    SessionError::Invalid { message }
}

impl std::fmt::Debug for SessionTools {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("SessionTools")
            .field(self.registry())
            .finish()
    }
}
