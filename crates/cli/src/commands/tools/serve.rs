//! `zareba tools serve`: tools in a sandbox, behind the HTTP routes of CAMEL's tool server.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use zareba_facades::camel::{Access, Camel, CamelOptions, CamelServer, LoadedTools, Toolbox as _};
use zareba_runtime::{Sandbox, SandboxPlace};
use zareba_tools::{
    Entrypoint, LoadFailure, Loaded, Place, PythonHost, PythonOptions, Registry, ToolError,
};
use zareba_wire::server::ServerLimits;

use super::{
    token::{ServerToken, Whereabouts},
    transport::Transport,
};
use crate::{
    arguments::{OutputFormat, ServeToolsArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Place as State},
    say,
};

/// Serves until a signal ends it, and the sandbox with it.
pub(crate) fn perform(context: &Context, arguments: &ServeToolsArguments) -> Result<Exit, Failure> {
    let entrypoints = entrypoints(&arguments.entrypoints)?;
    let transport = Transport::of(arguments)?;
    let token = token(arguments)?;
    let options = CamelOptions {
        is_strict: arguments.strict,
        timeout: timeout(arguments.timeout)?,
        ..CamelOptions::default()
    };
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    sandbox::within(context, &configuration, async |sandbox| {
        // First of all, so that clients which come early wait for the tools instead of failing.
        let server = listen(transport, token.as_ref())?;
        let tools = load(sandbox, entrypoints, python_options(arguments)).await?;
        let state = State::new(context, &configuration.settings);
        let published = token
            .as_ref()
            .map(|token| token.publish(state.state(), "tools", server.endpoint()))
            .transpose()?;
        tell(context.globals.output, &server, &tools, published.as_ref())?;
        let camel = Camel::new(Arc::new(tools), options);
        server
            .serve(camel, &ServerLimits::default(), std::future::pending())
            .await;
        Ok(Exit::Success)
    })
}

fn entrypoints(texts: &[String]) -> Result<Vec<Entrypoint>, Failure> {
    let parsed = texts.iter().map(|text| {
        let entrypoint = text.parse::<Entrypoint>();
        entrypoint.map_err(|error| Failure::of(Exit::Usage, &error))
    });
    parsed.collect()
}

/// The token that callers must show, unless everybody may call.
fn token(arguments: &ServeToolsArguments) -> Result<Option<ServerToken>, Failure> {
    match &arguments.token_file {
        Some(file) => ServerToken::in_file(file).map(Some),
        None if arguments.open => Ok(None),
        None => Ok(Some(ServerToken::made())),
    }
}

/// Takes the socket.
fn listen(transport: Transport, token: Option<&ServerToken>) -> Result<CamelServer, Failure> {
    let Transport { address, tls } = transport;
    let access = match token {
        Some(token) => Access::Token(token.secret().to_owned()),
        None => Access::Anyone,
    };
    let server = CamelServer::bind(address, access)
        .or_fail(Exit::Start, format!("cannot listen on `{address}`"))?;
    Ok(match tls {
        Some(tls) => server.secured(tls),
        None => server,
    })
}

fn timeout(seconds: Option<f64>) -> Result<Option<Duration>, Failure> {
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    let limit = Duration::try_from_secs_f64(seconds).ok();
    let limit = limit.filter(|limit| !limit.is_zero());
    let message = format!("`--timeout {seconds}` is not a number of seconds above 0");
    limit
        .map(Some)
        .ok_or_else(|| Failure::new(Exit::Usage, message))
}

fn python_options(arguments: &ServeToolsArguments) -> PythonOptions {
    let default = PythonOptions::default();
    PythonOptions {
        python: arguments.python.clone(),
        threads: arguments.threads.map_or(default.threads, usize::from),
        ..default
    }
}

/// Loads the tools. One that cannot be had is told, and the others are served.
async fn load(
    sandbox: Arc<dyn Sandbox>,
    entrypoints: Vec<Entrypoint>,
    options: PythonOptions,
) -> Result<LoadedTools, Failure> {
    let place: Arc<dyn Place> = Arc::new(SandboxPlace(sandbox));
    let started = PythonHost::start(place, entrypoints, options).await;
    let (host, mut loaded) = started.map_err(|error| not_started(&error))?;
    let registry = Registry::new();
    for tool in host.tools() {
        let definition = tool.definition().clone();
        if let Err(error) = registry.add(tool) {
            loaded.failures.push(LoadFailure {
                entrypoint: definition.origin.to_string(),
                kind: error.kind().to_owned(),
                message: error.to_string(),
                traceback: String::new(),
            });
        }
    }
    Ok(LoadedTools { registry, loaded })
}

fn not_started(error: &ToolError) -> Failure {
    Failure::of(Exit::Start, error)
        .while_doing("cannot load the tools")
        .hint("`--python` names the interpreter, `--workspace` the directory with its modules")
}

/// Says where it listens and what it serves, once everything is there.
fn tell(
    format: OutputFormat,
    server: &CamelServer,
    tools: &LoadedTools,
    token: Option<&Whereabouts>,
) -> Result<(), Failure> {
    let Loaded { failures, .. } = &tools.loaded;
    for failure in failures {
        let LoadFailure {
            entrypoint,
            kind,
            message,
            ..
        } = failure;
        say::warning(format_args!(
            "cannot load `{entrypoint}`: {kind}: {message}"
        ));
    }
    let definitions = tools.definitions();
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    let url = server.url();
    if names.is_empty() {
        say::warning("there is no tool to serve");
    } else {
        say::note(format_args!("tools: {}", names.join(", ")));
    }
    tell_token(&url, token);
    say::note(format_args!(
        "listening on {url} (what there is: {url}/docs)"
    ));
    match format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => {
            let failed: Vec<&str> = failures.iter().map(|it| it.entrypoint.as_str()).collect();
            let file = token.and_then(Whereabouts::file);
            let file = file.map(|file| file.display().to_string());
            say::line(json!({ "url": url, "tools": names, "failed": failed, "token_file": file }))
        }
    }
}

fn tell_token(url: &str, token: Option<&Whereabouts>) {
    let Some(token) = token else {
        say::note("everybody who reaches the port may call the tools");
        return;
    };
    if let Some(file) = token.file() {
        say::note(format_args!(
            "the token of callers is in {}",
            file.display()
        ));
    }
    say::words(format_args!(
        "  curl -H \"Authorization: Bearer {}\" {url}/health",
        token.in_shell()
    ));
}
