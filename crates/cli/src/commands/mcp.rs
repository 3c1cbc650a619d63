//! `zareba mcp`: a sandbox for a client of the Model Context Protocol.

mod place;
mod servers;

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use serde_json::json;
use tokio::sync::watch;
use zareba_config::Configuration;
use zareba_mcp::{
    client::{McpServers, Naming},
    server::{HttpOptions, HttpServer, ServerOptions, Token, ToolServer, serve_stdio},
};
use zareba_runtime::Sandbox;
use zareba_tools::Registry;

use crate::{
    arguments::{McpArguments, OutputFormat},
    commands::{Context, VERSION},
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Fleet, Place},
    say,
    signals::Signals,
};

pub(crate) use place::SandboxPlace;
pub(crate) use servers::{pins, specs};

/// The variable with the token for `--http`.
const TOKEN_VARIABLE: &str = "ZAREBA_MCP_TOKEN";

/// Serves a client until it goes, or clients until a signal ends us.
pub(crate) fn perform(context: &Context, arguments: &McpArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    if let (Some(id), false) = (&arguments.session, flags.is_empty()) {
        let message = format!("the sandbox `{id}` is as it is; flags for a fresh one do not apply");
        return Err(Failure::new(Exit::Usage, message));
    }
    let configuration = context.configuration(flags)?;
    let job = Job {
        context,
        arguments,
        configuration: &configuration,
        token: token(context),
    };
    match &arguments.session {
        None => sandbox::within(context, &configuration, async |sandbox| {
            job.serve(sandbox).await
        }),
        Some(id) => Fleet::visit(context, async |fleet| {
            let mut signals = Signals::watch()?;
            let serve = async {
                let sandbox = fleet.find(id).await?.attach().await?;
                job.serve(sandbox).await
            };
            tokio::select! {
                outcome = serve => outcome,
                signal = signals.next() => Ok(Exit::Command(128 + signal)),
            }
        }),
    }
}

struct Job<'a> {
    context: &'a Context,
    arguments: &'a McpArguments,
    configuration: &'a Configuration,
    token: String,
}

impl Job<'_> {
    async fn serve(&self, sandbox: Arc<dyn Sandbox>) -> Result<Exit, Failure> {
        let place = Arc::new(SandboxPlace::new(sandbox));
        let registry = Registry::new();
        let (are_there, ready) = watch::channel(false);
        let options = ServerOptions {
            version: VERSION.to_owned(),
            remarks: None,
        };
        let server =
            ToolServer::new(Arc::clone(&place) as _, options).with_tools(registry.clone(), ready);
        let connected = OnceLock::new();
        let equip = async {
            let servers = self.connect(&place, &registry).await?;
            are_there.send_replace(true);
            let _ = connected.set(servers);
            // They are there as long as clients are.
            std::future::pending::<Result<Infallible, Failure>>().await
        };
        // Clients do not wait for servers whose programs are perhaps fetched first.
        let outcome = tokio::select! {
            outcome = self.answer(server) => outcome,
            Err(failure) = equip => Err(failure),
        };
        if let Some(servers) = connected.get() {
            servers.close().await;
        }
        outcome
    }

    /// Puts the tools of configured servers into the registry.
    async fn connect(
        &self,
        place: &Arc<SandboxPlace>,
        registry: &Registry,
    ) -> Result<McpServers, Failure> {
        let settings = &self.configuration.settings;
        let pins = pins(Place::new(self.context, settings).state())?;
        for server in &self.arguments.approve {
            let approved = pins.approve(server);
            approved.or_fail(Exit::Failure, "cannot accept the tools of a server")?;
        }
        let place = Arc::clone(place) as Arc<dyn zareba_tools::Place>;
        let specs = specs(&settings.mcp)?;
        let connected = McpServers::connect(specs, Some(place), pins, Naming::Prefixed);
        let mut servers = connected.await;
        servers.add_to(registry);
        for problem in servers.problems() {
            say::warning(problem);
        }
        Ok(servers)
    }

    async fn answer(&self, server: ToolServer) -> Result<Exit, Failure> {
        let Some(address) = self.arguments.http else {
            let served = serve_stdio(server, tokio::io::stdin(), tokio::io::stdout()).await;
            served.or_fail(Exit::Failure, "cannot serve the client")?;
            return Ok(Exit::Success);
        };
        let token = Token::new(&self.token).ok_or_else(|| {
            let message = format!(
                "the token in {TOKEN_VARIABLE} has fewer than {} characters",
                Token::BYTES_MIN
            );
            Failure::new(Exit::Usage, message)
        })?;
        let options = HttpOptions {
            address,
            token,
            origins: self.arguments.origin.clone(),
        };
        let bound = HttpServer::bind(options);
        let listening = bound.or_fail(Exit::Start, "cannot serve the Model Context Protocol")?;
        self.announce(&listening.url())?;
        // A signal ends us with the sandbox.
        listening.serve(server, std::future::pending()).await;
        Ok(Exit::Success)
    }

    fn announce(&self, url: &str) -> Result<(), Failure> {
        let is_ours = self.context.environment.get(TOKEN_VARIABLE).is_none();
        match self.context.globals.output {
            OutputFormat::Json => say::line(json!({ "url": url, "token": self.token })),
            OutputFormat::Text if is_ours => {
                say::note(format_args!("serving {url} with the token {}", self.token));
                Ok(())
            }
            OutputFormat::Text => {
                say::note(format_args!(
                    "serving {url} with the token of {TOKEN_VARIABLE}"
                ));
                Ok(())
            }
        }
    }
}

/// The token of the environment, or a new one.
fn token(context: &Context) -> String {
    let given = context.environment.get(TOKEN_VARIABLE);
    given.map_or_else(Token::generate, ToOwned::to_owned)
}
