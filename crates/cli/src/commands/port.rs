//! `zareba port`: a port inside a sandbox, reached from here.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use zareba_runtime::{RuntimeError, Sandbox};

use crate::{
    arguments::{OutputFormat, PortArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Fleet},
    say,
    signals::Signals,
};

/// Connections that are carried at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// Forwards a port, or tells which there are.
pub(crate) fn perform(context: &Context, arguments: &PortArguments) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let sandbox = fleet.find(&arguments.id).await?.attach().await?;
        match arguments.port {
            Some(port) => forward(context, sandbox, port, arguments.on).await,
            None => list(context, &*sandbox).await,
        }
    })
}

async fn list(context: &Context, sandbox: &dyn Sandbox) -> Result<Exit, Failure> {
    let inspected = sandbox.inspect().await;
    let document = inspected.map_err(|error| sandbox::failure(&error))?;
    let listening = document.get("listening").and_then(Value::as_array);
    let listening = listening.into_iter().flatten().filter_map(Value::as_str);
    for address in listening {
        match context.globals.output {
            OutputFormat::Text => say::line(address)?,
            OutputFormat::Json => say::line(json!({ "address": address }))?,
        }
    }
    Ok(Exit::Success)
}

async fn forward(
    context: &Context,
    sandbox: Arc<dyn Sandbox>,
    port: u16,
    on: Option<u16>,
) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, on.unwrap_or(0)));
    let deed = format!("cannot listen on {wanted}");
    let bound = TcpListener::bind(wanted).await;
    let is_taken = matches!(&bound, Err(error) if error.kind() == ErrorKind::AddrInUse);
    let listener = bound
        .or_fail(Exit::Start, &deed)
        .map_err(|failure| match is_taken {
            true => failure.hint("leave out `--on` for a free port, or name another"),
            false => failure,
        })?;
    let address = listener.local_addr().or_fail(Exit::Start, &deed)?;
    match context.globals.output {
        OutputFormat::Text => say::line(format_args!("http://{address}"))?,
        OutputFormat::Json => say::line(json!({ "inside": port, "outside": address }))?,
    }
    tokio::select! {
        failure = serve(listener, sandbox, port) => Err(failure),
        signal = signals.next() => Ok(Exit::Command(128 + signal)),
    }
}

/// Carries connections until the sandbox is gone.
async fn serve(listener: TcpListener, sandbox: Arc<dyn Sandbox>, port: u16) -> Failure {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (gone, mut is_gone) = mpsc::channel(1);
    loop {
        let accept = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accept => accepted,
            Some(failure) = is_gone.recv() => return failure,
        };
        let client = match accepted {
            Ok((client, _)) => client,
            Err(error) => {
                return Failure::of(Exit::Failure, &error).while_doing("cannot take connections");
            }
        };
        let (sandbox, gone) = (Arc::clone(&sandbox), gone.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = carry(client, &*sandbox, port).await {
                tell(&error, &gone);
            }
        });
    }
}

/// A connection that breaks is between its two ends.
async fn carry(
    mut client: TcpStream,
    sandbox: &dyn Sandbox,
    port: u16,
) -> Result<(), RuntimeError> {
    let mut inside = sandbox.connect_port(port).await?;
    let _ = copy_bidirectional(&mut client, &mut inside).await;
    Ok(())
}

/// A program that does not listen may do so later; a sandbox that is gone does not come back.
fn tell(error: &RuntimeError, gone: &mpsc::Sender<Failure>) {
    let failure = sandbox::failure(error);
    if failure.exit() == Exit::Lost {
        // Another one has told already.
        let _ = gone.try_send(failure);
    } else {
        say::failure(&failure);
    }
}
