//! `zareba mcp`: a sandbox for a client of the Model Context Protocol.

mod place;
mod remarks;
mod servers;

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use serde_json::json;
use tokio::sync::{Mutex, watch};
use zareba_config::{Configuration, HomeTools};
use zareba_mcp::{
    client::{McpServers, Naming},
    server::{HttpOptions, HttpServer, ServerOptions, Token, ToolServer, serve_stdio},
};
use zareba_runtime::{Sandbox, SandboxPlace};
use zareba_session::{Mask, Secret};
use zareba_tools::Registry;

use crate::{
    arguments::{McpArguments, OutputFormat},
    commands::{
        Context, VERSION,
        tools::{ServerToken, Whereabouts},
    },
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Fleet, Member, Place, Wanted},
    say,
    signals::Signals,
};

pub(crate) use servers::{pins, secrets, specs};

use place::SandboxWorkplace;
use remarks::{Kept, Known};

/// The variable with the token for `--http`.
const TOKEN_VARIABLE: &str = "ZAREBA_MCP_TOKEN";

/// Serves a client until it goes, or clients until a signal ends us.
pub(crate) fn perform(context: &Context, arguments: &McpArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let is_plain = flags.is_empty() && arguments.life.first_flag().is_none();
    if let (Some(id), false) = (&arguments.session, is_plain) {
        let message = format!("the sandbox `{id}` is as it is; flags for a fresh one do not apply");
        return Err(Failure::new(Exit::Usage, message));
    }
    let configuration = context.configuration(flags)?;
    let job = Job {
        context,
        arguments,
        configuration: &configuration,
        token: token(context, arguments)?,
    };
    if let Err(error) = zareba_config::wipe_keys() {
        tracing::warn!(%error, "programs of the same user can read the token in our environment");
    }
    match &arguments.session {
        None => {
            let wanted = Wanted {
                life: arguments.life.clone(),
                ..Wanted::default()
            };
            sandbox::within_wanted(context, &configuration, wanted, async |sandbox| {
                let remarks = of_fresh(&job, &*sandbox).await;
                job.serve(sandbox, remarks).await
            })
        }
        Some(id) => Fleet::visit(context, async |fleet| {
            let mut signals = Signals::watch()?;
            let serve = async {
                let member = fleet.find(id).await?;
                let sandbox = member.attach().await?;
                job.serve(sandbox, of_member(&member)).await
            };
            tokio::select! {
                outcome = serve => outcome,
                signal = signals.next() => Ok(Exit::Command(128 + signal)),
            }
        }),
    }
}

/// What a model has to know of a fresh sandbox.
async fn of_fresh(job: &Job<'_>, sandbox: &dyn Sandbox) -> String {
    let settings = &job.configuration.settings;
    let is_remote = job.context.server().is_some();
    let about = match is_remote {
        true => Fleet::about(job.context, job.configuration, sandbox.id()).await,
        false => Some(sandbox::about(settings)),
    };
    Known {
        runtime: sandbox.runtime(),
        about: &about.unwrap_or_default(),
        has_image: settings.runtime.image.is_some(),
        names_workspace: settings.runtime.workspace.is_some(),
        kept: Kept::UntilTheClientEnds,
        may_be_root: is_remote || settings.docker.user_id == Some(0),
        sees_home_tools: Some(settings.native.home_tools == HomeTools::ReadOnly),
    }
    .remarks()
}

/// What a model has to know of a sandbox that was there before.
fn of_member(member: &Member<'_>) -> String {
    let runtime = member.summary.runtime;
    Known {
        runtime,
        about: &member.about().unwrap_or_default(),
        has_image: member.summary.image.is_some(),
        names_workspace: false,
        kept: Kept::InTheSandbox,
        may_be_root: runtime != "native",
        sees_home_tools: None,
    }
    .remarks()
}

struct Job<'a> {
    context: &'a Context,
    arguments: &'a McpArguments,
    configuration: &'a Configuration,
    token: Option<ServerToken>,
}

impl Job<'_> {
    async fn serve(&self, sandbox: Arc<dyn Sandbox>, remarks: String) -> Result<Exit, Failure> {
        let workplace = Arc::new(SandboxWorkplace(Arc::clone(&sandbox)));
        let servers = Arc::new(Mutex::new(self.servers(sandbox)?));
        let registry = Registry::new();
        let (are_there, ready) = watch::channel(false);
        let options = ServerOptions {
            version: VERSION.to_owned(),
            remarks: Some(remarks).filter(|remarks| !remarks.is_empty()),
        };
        let server = ToolServer::new(workplace, options)
            .with_tools(registry.clone(), ready)
            .with_servers(Arc::clone(&servers));
        let server = self.hiding_keys(server);
        let equip = async {
            let mut servers = servers.lock().await;
            servers.look_for(&registry).await;
            for problem in servers.problems() {
                say::warning(problem);
            }
            drop(servers);
            are_there.send_replace(true);
            // They are there as long as clients are.
            std::future::pending::<Infallible>().await
        };
        // Clients do not wait for servers whose programs are perhaps fetched first.
        let outcome = tokio::select! {
            outcome = self.answer(server) => outcome,
            never = equip => match never {},
        };
        // Where a client still waits for one of them, they end with the sandbox.
        if let Ok(servers) = servers.try_lock() {
            servers.close().await;
        }
        outcome
    }

    /// Keys of the configured servers are not for clients: programs that have them run where these
    /// can read their variables.
    fn hiding_keys(&self, server: ToolServer) -> ToolServer {
        let keys = secrets(&self.configuration.settings.mcp).map(Secret);
        let mask = Mask::new(&keys.collect::<Vec<_>>());
        match mask.is_empty() {
            true => server,
            false => server.hiding(Arc::new(move |text| mask.text(text))),
        }
    }

    /// The configured servers, with what was accepted of them.
    fn servers(&self, sandbox: Arc<dyn Sandbox>) -> Result<McpServers, Failure> {
        let settings = &self.configuration.settings;
        let pins = pins(Place::new(self.context, settings).state())?;
        for server in &self.arguments.approve {
            let approved = pins.approve(server);
            approved.or_fail(Exit::Failure, "cannot accept the tools of a server")?;
        }
        let place = Arc::new(SandboxPlace(sandbox));
        let specs = specs(&settings.mcp)?;
        Ok(McpServers::new(specs, Some(place), pins, Naming::Prefixed))
    }

    async fn answer(&self, server: ToolServer) -> Result<Exit, Failure> {
        let (Some(address), Some(token)) = (self.arguments.http, &self.token) else {
            let served = serve_stdio(server, tokio::io::stdin(), tokio::io::stdout()).await;
            served.or_fail(Exit::Failure, "cannot serve the client")?;
            return Ok(Exit::Success);
        };
        let options = HttpOptions {
            address,
            token: Token::new(token.secret())
                .ok_or_else(|| Failure::new(Exit::Usage, "the token is too short"))?,
            origins: self.arguments.origin.clone(),
        };
        let bound = HttpServer::bind(options);
        let listening = bound
            .or_fail(Exit::Start, "cannot serve the Model Context Protocol")
            .map_err(|failure| only_local(failure, address))?;
        let state = Place::new(self.context, &self.configuration.settings);
        let known = token.publish(state.state(), "mcp", listening.endpoint())?;
        self.announce(&listening.url(), &known)?;
        // A signal ends us with the sandbox.
        listening.serve(server, std::future::pending()).await;
        Ok(Exit::Success)
    }

    fn announce(&self, url: &str, known: &Whereabouts) -> Result<(), Failure> {
        if self.context.globals.output == OutputFormat::Json {
            let file = known.file().map(|file| file.display().to_string());
            return say::line(json!({ "url": url, "token_file": file }));
        }
        say::note(format_args!("serving {url}"));
        if let Some(file) = known.file() {
            say::note(format_args!(
                "the token of clients is in {}",
                file.display()
            ));
        }
        say::words(format_args!(
            "  claude mcp add --transport http sandbox {url} --header \"Authorization: Bearer {}\"",
            known.in_shell()
        ));
        Ok(())
    }
}

/// The token of clients by HTTP: that of a file or of the environment, or a new one.
fn token(context: &Context, arguments: &McpArguments) -> Result<Option<ServerToken>, Failure> {
    if arguments.http.is_none() {
        return Ok(None);
    }
    let given = context.environment.get(TOKEN_VARIABLE);
    let token = match (&arguments.token_file, given) {
        (Some(file), _) => ServerToken::in_file(file)?,
        (None, Some(value)) => ServerToken::in_variable(TOKEN_VARIABLE, value)?,
        (None, None) => ServerToken::made(),
    };
    Ok(Some(token))
}

/// There is no TLS of ours here, so others cannot be let in.
fn only_local(failure: Failure, address: SocketAddr) -> Failure {
    if address.ip().to_canonical().is_loopback() {
        return failure;
    }
    failure.hint("listen on a loopback address, and put a proxy with TLS in front")
}
