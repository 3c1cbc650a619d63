//! `zareba tools serve`: tools in a sandbox, behind the HTTP routes of CAMEL's tool server.

use std::{
    fs,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use zareba_facades::camel::{Access, Camel, CamelOptions, CamelServer, LoadedTools, Toolbox as _};
use zareba_runtime::Sandbox;
use zareba_tools::{
    Entrypoint, LoadFailure, Loaded, Place, PythonHost, PythonOptions, Registry, ToolError,
};
use zareba_wire::server::ServerLimits;

use super::place::SandboxPlace;
use crate::{
    arguments::{OutputFormat, ServeToolsArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox, say,
};

/// What can be guessed is no token.
const TOKEN_BYTES_MIN: usize = 32;

/// Serves until a signal ends it, and the sandbox with it.
pub(crate) fn perform(context: &Context, arguments: &ServeToolsArguments) -> Result<Exit, Failure> {
    let entrypoints = entrypoints(&arguments.entrypoints)?;
    let address = address(arguments)?;
    let access = access(arguments, address)?;
    let options = CamelOptions {
        is_strict: arguments.strict,
        timeout: timeout(arguments.timeout)?,
        ..CamelOptions::default()
    };
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    sandbox::within(context, &configuration, async |sandbox| {
        // First of all, so that clients which come early wait for the tools instead of failing.
        let server = CamelServer::bind(address, access)
            .or_fail(Exit::Start, format!("cannot listen on `{address}`"))?;
        let tools = load(sandbox, entrypoints, python_options(arguments)).await?;
        tell(context.globals.output, &server, &tools)?;
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

fn address(arguments: &ServeToolsArguments) -> Result<SocketAddr, Failure> {
    let (host, port) = (arguments.host.as_str(), arguments.port);
    let deed = || format!("cannot listen on the host `{host}`");
    let mut addresses = (host, port)
        .to_socket_addrs()
        .or_fail(Exit::Usage, deed())?;
    let first = addresses.next();
    first.ok_or_else(|| Failure::new(Exit::Usage, deed()).hint("use an address of this machine"))
}

fn access(arguments: &ServeToolsArguments, address: SocketAddr) -> Result<Access, Failure> {
    match token(arguments)? {
        Some(token) if token.len() < TOKEN_BYTES_MIN => {
            let message = format!("the token has fewer than {TOKEN_BYTES_MIN} characters");
            Err(Failure::new(Exit::Usage, message).hint("`openssl rand -hex 32` makes a good one"))
        }
        Some(token) => Ok(Access::Token(token)),
        None if arguments.open => Ok(Access::Anyone),
        None if address.ip().to_canonical().is_loopback() => Ok(Access::Loopback),
        None => {
            let message = format!(
                "whoever reaches `{address}` could call the tools, and no token is asked for"
            );
            let failure = Failure::new(Exit::Usage, message);
            Err(failure
                .hint("give `--token-file` or `--token`, or `--open` if that is what you want"))
        }
    }
}

fn token(arguments: &ServeToolsArguments) -> Result<Option<String>, Failure> {
    let Some(file) = &arguments.token_file else {
        return Ok(arguments.token.clone());
    };
    let deed = format!("cannot read the token in `{}`", file.display());
    let text = fs::read_to_string(file).or_fail(Exit::Usage, deed)?;
    Ok(Some(text.trim().to_owned()))
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
fn tell(format: OutputFormat, server: &CamelServer, tools: &LoadedTools) -> Result<(), Failure> {
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
    let url = server.endpoint().to_string();
    if names.is_empty() {
        say::warning("there is no tool to serve");
    } else {
        say::note(format_args!("tools: {}", names.join(", ")));
    }
    say::note(format_args!(
        "listening on {url} (what there is: {url}/docs)"
    ));
    match format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => {
            let failed: Vec<&str> = failures.iter().map(|it| it.entrypoint.as_str()).collect();
            say::line(json!({ "url": url, "tools": names, "failed": failed }))
        }
    }
}
