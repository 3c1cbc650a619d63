//! [`PythonHost`]: one worker process in a place, started again when it died.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::sync::Mutex as Exclusive;
use zareba_protocol::ErrorClass;
use zareba_wire::{
    BoxFuture,
    program::{ProgramLine, ProgramRequest, ProgramStdin},
};

use super::{
    Entrypoint, Loaded,
    message::{Done, Outcome, Request, VALUE_BYTES_MAX},
    process::Process,
};
use crate::{
    Call, Exception, Host, NotJson, OUTPUT_BYTES_MAX, Place, Returned, Tool, ToolDefinition,
    ToolError,
};

/// The worker. It needs nothing but Python 3.8.
const WORKER: &str = concat!(
    include_str!("worker/streams.py"),
    include_str!("worker/schema.py"),
    include_str!("worker/load.py"),
    include_str!("worker/main.py"),
);

/// Calls of one host that may be under way; more would only wait in its interpreter.
const CALLS_MAX: usize = 256;

/// How a host runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonOptions {
    /// The interpreter: a name to look for, or the path of one, as in a virtual environment.
    pub python: String,
    /// Variables beside those that every program of the place has.
    pub environment: Vec<(String, String)>,
    /// Calls of functions that are not `async` which run at once.
    pub threads: usize,
    /// Where it starts, from where modules can be imported; `None` is the place's workspace.
    pub directory: Option<String>,
    /// How long it may take to load all entrypoints.
    pub load_timeout: Duration,
    /// How long a call may take to end that was cancelled, before the interpreter is ended.
    pub grace: Duration,
}

impl Default for PythonOptions {
    fn default() -> Self {
        Self {
            python: "python3".to_owned(),
            environment: Vec::new(),
            threads: 16,
            directory: None,
            load_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(3),
        }
    }
}

/// A worker process that runs functions of Python. Toolkits keep their state from call to call.
/// When the process dies, the calls that were under way are told so, and the next call starts it
/// anew. Dropping the last handle ends it.
pub struct PythonHost {
    place: Arc<dyn Place>,
    entrypoints: Vec<Entrypoint>,
    options: PythonOptions,
    tools: Vec<ToolDefinition>,
    process: Mutex<Option<Arc<Process>>>,
    /// Held by the one who starts it.
    starting: Exclusive<()>,
}

struct PythonTool {
    host: Arc<PythonHost>,
    definition: ToolDefinition,
}

impl PythonHost {
    /// Starts a worker and has it load entrypoints. One that cannot be loaded is a failure in
    /// what is returned, and the others are loaded.
    ///
    /// # Errors
    /// When there is no such interpreter, or it ends or hangs while it loads.
    pub async fn start(
        place: Arc<dyn Place>,
        entrypoints: Vec<Entrypoint>,
        options: PythonOptions,
    ) -> Result<(Arc<Self>, Loaded), ToolError> {
        let (process, loaded) = begin(&*place, &entrypoints, &options).await?;
        let host = Arc::new(Self {
            place,
            entrypoints,
            options,
            tools: loaded.tools.clone(),
            process: Mutex::new(Some(process)),
            starting: Exclusive::new(()),
        });
        Ok((host, loaded))
    }

    /// The same without starting it: the first call does. For definitions that are known.
    pub fn asleep(
        place: Arc<dyn Place>,
        entrypoints: Vec<Entrypoint>,
        options: PythonOptions,
        tools: Vec<ToolDefinition>,
    ) -> Arc<Self> {
        Arc::new(Self {
            place,
            entrypoints,
            options,
            tools,
            process: Mutex::new(None),
            starting: Exclusive::new(()),
        })
    }

    /// Its tools.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let tools = self.tools.iter().map(|definition| -> Arc<dyn Tool> {
            Arc::new(PythonTool {
                host: Arc::clone(self),
                definition: definition.clone(),
            })
        });
        tools.collect()
    }

    /// The process, started when there is none.
    async fn process(&self) -> Result<Arc<Process>, ToolError> {
        if let Some(process) = self.running() {
            return Ok(process);
        }
        let _only = self.starting.lock().await;
        if let Some(process) = self.running() {
            return Ok(process);
        }
        let (process, _) = begin(&*self.place, &self.entrypoints, &self.options).await?;
        self.replace(Some(Arc::clone(&process)));
        Ok(process)
    }

    fn running(&self) -> Option<Arc<Process>> {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.clone().filter(|process| process.is_alive())
    }

    fn replace(&self, process: Option<Arc<Process>>) -> Option<Arc<Process>> {
        let mut held = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, process)
    }

    async fn call(&self, tool: &str, call: Call) -> Result<Returned, ToolError> {
        let process = self.process().await?;
        if process.calls() >= CALLS_MAX {
            return Err(ToolError::Busy {
                tool: tool.to_owned(),
                limit: CALLS_MAX,
            });
        }
        let gone = |message| ToolError::Gone {
            tool: tool.to_owned(),
            message,
        };
        let under_way = process.begin_call().map_err(gone)?;
        let request = Request::Call {
            id: under_way.id(),
            tool,
            args: &call.arguments.positional,
            kwargs: &call.arguments.named,
            coerce: call.is_validated,
        };
        let line = request.line().map_err(|error| gone(error.to_string()))?;
        if line.len() > VALUE_BYTES_MAX {
            return Err(too_large(tool, "what it is called with", line.len()));
        }
        // When nobody takes it, the answer says why.
        process.send(line).await;
        let done = under_way.answer().await.map_err(gone)?;
        returned(tool, done)
    }
}

impl Host for PythonHost {
    fn reset(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        async move {
            self.close().await;
            self.process().await.map(drop)
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        if let Some(process) = self.replace(None) {
            process.kill("its host was reset");
        }
        Box::pin(std::future::ready(()))
    }
}

impl Tool for PythonTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>> {
        Box::pin(self.host.call(self.definition.name.as_str(), call))
    }

    fn host(&self) -> Option<Arc<dyn Host>> {
        Some(Arc::clone(&self.host) as Arc<dyn Host>)
    }
}

impl fmt::Debug for PythonHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = formatter.debug_struct("PythonHost");
        list.field("entrypoints", &self.entrypoints)
            .finish_non_exhaustive()
    }
}

/// Starts a worker and waits until it has loaded.
async fn begin(
    place: &dyn Place,
    entrypoints: &[Entrypoint],
    options: &PythonOptions,
) -> Result<(Arc<Process>, Loaded), ToolError> {
    let python = &options.python;
    let unavailable = |why: &str| ToolError::Unavailable {
        message: format!("the interpreter `{python}` cannot host tools: {why}"),
        class: ErrorClass::Invalid,
    };
    let mut environment = vec![("CAMEL_RUNTIME".to_owned(), "true".to_owned())];
    environment.extend(options.environment.iter().cloned());
    let words = [python, "-c", WORKER].map(str::to_owned);
    let request = ProgramRequest {
        directory: options.directory.clone(),
        environment,
        stdin: ProgramStdin::Open,
        ..ProgramRequest::new(ProgramLine::Argv(words.to_vec()))
    };
    let connection = place.start(request).await.map_err(|error| {
        ToolError::unavailable(&format!("cannot start the interpreter `{python}`"), &error)
    })?;
    let (process, ready) = Process::begin(connection, options.grace);
    let load = Request::Load {
        entrypoints: entrypoints.iter().map(Into::into).collect(),
        threads: options.threads.clamp(1, CALLS_MAX),
        output_bytes_max: OUTPUT_BYTES_MAX,
        value_bytes_max: VALUE_BYTES_MAX,
    };
    let line = load
        .line()
        .map_err(|error| unavailable(&error.to_string()))?;
    process.send(line).await;
    let ready = tokio::time::timeout(options.load_timeout, ready).await;
    let ready = match ready {
        Ok(Ok(Ok(ready))) => ready,
        Ok(Ok(Err(why))) => return Err(unavailable(&why)),
        Ok(Err(_)) => return Err(unavailable("it was ended")),
        Err(_) => {
            let seconds = options.load_timeout.as_secs_f64();
            return Err(unavailable(&format!(
                "loading took longer than {seconds} s"
            )));
        }
    };
    Ok((process, Loaded::from(ready)))
}

fn returned(tool: &str, done: Done) -> Result<Returned, ToolError> {
    let Done {
        stdout,
        stderr,
        truncated,
        outcome,
        id: _,
    } = done;
    // An honest worker has cut them already.
    let is_truncated = truncated || stdout.len().max(stderr.len()) > OUTPUT_BYTES_MAX;
    let (stdout, stderr) = (cut(stdout), cut(stderr));
    let tool = tool.to_owned();
    let exception = |kind, message, traceback| Exception {
        tool: tool.clone(),
        kind: cut(kind),
        message: cut(message),
        traceback: cut(traceback),
        stdout: stdout.clone(),
        stderr: stderr.clone(),
        is_truncated,
    };
    match outcome {
        Outcome::Returned { json } if json.len() > VALUE_BYTES_MAX => {
            Err(too_large(&tool, "its result", json.len()))
        }
        Outcome::Returned { json } => Ok(Returned {
            json,
            stdout,
            stderr,
            is_truncated,
        }),
        Outcome::Raised {
            kind,
            message,
            traceback,
        } => Err(ToolError::Raised(Box::new(exception(
            kind, message, traceback,
        )))),
        Outcome::Exited { message } => {
            let exception = exception("SystemExit".to_owned(), message, String::new());
            Err(ToolError::Exited(Box::new(exception)))
        }
        Outcome::NotJson {
            kind,
            description,
            message,
        } => Err(ToolError::NotJson(Box::new(NotJson {
            tool,
            kind: cut(kind),
            description: cut(description),
            message: cut(message),
            stdout,
            stderr,
            is_truncated,
        }))),
        Outcome::TooLarge { bytes } => Err(too_large(&tool, "its result", bytes)),
        Outcome::Cancelled => Err(ToolError::Gone {
            tool,
            message: "the call was stopped".to_owned(),
        }),
    }
}

/// A text of a worker, no longer than an output may be.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(OUTPUT_BYTES_MAX));
    text
}

fn too_large(tool: &str, what: &'static str, bytes: usize) -> ToolError {
    ToolError::TooLarge {
        tool: tool.to_owned(),
        what,
        bytes,
        limit: VALUE_BYTES_MAX,
    }
}
