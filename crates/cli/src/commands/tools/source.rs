//! Where tools are: loaded into a fresh sandbox, or in a session of a server.

use std::sync::Arc;

use tokio::runtime;
use zareba_client::{Client, ToolFormat};
use zareba_protocol::{Action, ActionEvent, Observation, SessionId, UseTool};
use zareba_runtime::SandboxPlace;
use zareba_tools::{
    Arguments, Call, Entrypoint, PythonHost, PythonOptions, Registry, ToolDefinition, observation,
};

use crate::{
    arguments::ToolsSource,
    commands::{Context, server_client},
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Place},
    say,
};

/// Tools that can be listed and called.
pub(super) enum Source {
    Fresh(Registry),
    Session(Client, SessionId),
}

impl Source {
    /// Does something with the tools that are meant.
    pub(super) fn visit(
        context: &Context,
        asked: &ToolsSource,
        entrypoints: &[String],
        work: impl AsyncFnOnce(Self) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        if let Some(session) = &asked.session {
            return in_session(context, session, entrypoints, work);
        }
        let entrypoints = parsed(entrypoints)?;
        let configuration = context.configuration(asked.sandbox.overrides()?)?;
        let options = PythonOptions {
            python: asked.python.clone(),
            ..PythonOptions::default()
        };
        sandbox::within(context, &configuration, async |sandbox| {
            let place = Arc::new(SandboxPlace(sandbox));
            let registry = load(place, entrypoints, options).await?;
            let outcome = work(Self::Fresh(registry.clone())).await;
            registry.close().await;
            outcome
        })
    }

    /// What is said of the tools.
    pub(super) async fn definitions(&self) -> Result<Vec<ToolDefinition>, Failure> {
        match self {
            Self::Fresh(registry) => Ok(registry.list()),
            Self::Session(client, session) => {
                let deed = "cannot list the tools of the session";
                let page = client.tools(session, ToolFormat::Full).await;
                let page = page.or_fail(Exit::Failure, deed)?;
                let tools = page.tools.into_iter().map(definition);
                tools.collect::<Result<_, _>>().or_fail(Exit::Failure, deed)
            }
        }
    }

    /// Calls a tool. What it fails with is an observation, too.
    pub(super) async fn call(
        &self,
        call: UseTool,
        timeout: Option<f64>,
    ) -> Result<Observation, Failure> {
        let event = ActionEvent {
            timeout,
            ..Action::CallTool(call.clone()).into()
        };
        match self {
            Self::Fresh(registry) => {
                let asked = Call {
                    timeout: event.hard_timeout(),
                    is_validated: !call.unchecked,
                    ..Call::new(Arguments::named(call.arguments))
                };
                Ok(observation(
                    &call.name,
                    registry.call(&call.name, asked).await,
                ))
            }
            Self::Session(client, session) => {
                let answer = client.run(session, event).await;
                let deed = format!("cannot call `{}`", call.name);
                Ok(answer.or_fail(Exit::Failure, deed)?.observation)
            }
        }
    }
}

fn in_session(
    context: &Context,
    session: &str,
    entrypoints: &[String],
    work: impl AsyncFnOnce(Source) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    if !entrypoints.is_empty() {
        let message = "a session has the tools that were added to it";
        return Err(Failure::new(Exit::Usage, message).hint("leave out the entrypoints"));
    }
    let Some(url) = context.server() else {
        let message = "sessions are those of a server, and none is named";
        return Err(Failure::new(Exit::Usage, message).hint("use `--server`, or set ZAREBA_URL"));
    };
    let session = SessionId::new(session).or_fail(Exit::Usage, "`--session` names no session")?;
    let configuration = context.configuration(Vec::new())?;
    let place = Place::new(context, &configuration.settings);
    let key = context.environment.get("ZAREBA_API_KEY");
    let client = server_client(url, key, place.state())?;
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    runtime.block_on(work(Source::Session(client, session)))
}

fn parsed(entrypoints: &[String]) -> Result<Vec<Entrypoint>, Failure> {
    let parsed = entrypoints.iter().map(|text| text.parse::<Entrypoint>());
    let parsed = parsed.map(|it| it.map_err(|error| Failure::of(Exit::Usage, &error)));
    parsed.collect()
}

async fn load(
    place: Arc<SandboxPlace>,
    entrypoints: Vec<Entrypoint>,
    options: PythonOptions,
) -> Result<Registry, Failure> {
    let started = PythonHost::start(place, entrypoints, options).await;
    let (host, loaded) = started.map_err(|error| {
        Failure::of(Exit::Start, &error)
            .hint("`--python` names the interpreter, `--workspace` the directory with its modules")
    })?;
    for failure in &loaded.failures {
        let (entrypoint, kind) = (&failure.entrypoint, &failure.kind);
        say::warning(format_args!(
            "cannot load `{entrypoint}`: {kind}: {}",
            failure.message
        ));
    }
    let registry = Registry::new();
    let added = registry.add_all(host.tools());
    added.or_fail(Exit::Failure, "cannot add the tools")?;
    Ok(registry)
}

/// A tool as the API tells it.
fn definition(mut tool: serde_json::Value) -> Result<ToolDefinition, serde_json::Error> {
    if let Some(origin) = tool.get_mut("origin") {
        let key = match origin["kind"].as_str() {
            Some("python") => "entrypoint",
            Some("command") => "command",
            _ => "server",
        };
        origin[key] = origin["name"].take();
    }
    serde_json::from_value(tool)
}
