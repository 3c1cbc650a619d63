//! `zareba serve`: sessions for many clients.

mod address;
mod admin_key;
mod assembly;
mod detached;
mod found;
mod images;
mod tools;

use std::{error::Error, io, path::Path};

use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
};
use zareba_config::{Configuration, Override, Settings};
use zareba_server::{BindError, Server, TraceSettings, Traces};
use zareba_session::{Recovery, Sessions};

use crate::{
    arguments::ServeArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    handed_over::{Lifeline, ReadySignal},
    logging, offspring,
    sandbox::{LAST_WORK, Place},
    say,
    signals::Signals,
};

pub(crate) use address::Published;
pub(crate) use assembly::{log_file, open_log, open_log_if_free};
pub(crate) use found::{local_client, server_client};

use assembly::Backends;

/// Serves until somebody ends it, or starts or ends a server in the background.
pub(crate) fn perform(context: &Context, arguments: &ServeArguments) -> Result<Exit, Failure> {
    let configuration = context.configuration(flags(arguments))?;
    let place = Place::new(context, &configuration.settings);
    if arguments.stop || arguments.detach {
        logging::start(&context.environment);
        return match arguments.stop {
            true => detached::stop(place.state()),
            false => detached::start(place.state()),
        };
    }
    if arguments.in_background {
        rustix::process::setsid().or_fail(Exit::Start, "cannot leave the terminal")?;
    }
    let mut hands = Hands {
        ready: arguments.ready_fd.map(ReadySignal::take).transpose()?,
        lifeline: arguments.lifeline_fd.map(Lifeline::take).transpose()?,
    };
    offspring::adopt_orphans();
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start the server")?;
    let traces = traces(&configuration.settings, runtime.handle())?;
    logging::start_with(&context.environment, traces.as_ref());
    let outcome = runtime.block_on(serve(&place, &configuration, &mut hands));
    if let (Err(_), Some(ready)) = (&outcome, hands.ready.take()) {
        // Its end is the sign to read why there is no server, which is printed after this.
        ready.close_with_us();
    }
    if let Some(traces) = traces {
        traces.end();
    }
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

/// Traces, when the settings say where they go.
fn traces(settings: &Settings, runtime: &Handle) -> Result<Option<Traces>, Failure> {
    let Some(url) = settings.telemetry.traces_url() else {
        return Ok(None);
    };
    let headers = settings.telemetry.headers.as_ref();
    let asked = TraceSettings {
        url,
        headers: headers.map(|headers| headers.expose().to_owned()),
        service: settings.telemetry.service_name.clone(),
    };
    let traces = Traces::start(&asked, runtime);
    traces
        .or_fail(Exit::Configuration, "cannot send traces")
        .map(Some)
}

/// Descriptors of whoever has started us.
struct Hands {
    ready: Option<ReadySignal>,
    lifeline: Option<Lifeline>,
}

fn flags(arguments: &ServeArguments) -> Vec<Override> {
    let listen = arguments.listen.as_ref();
    listen
        .map(|address| Override::new("--listen", "server.listen", address.clone()))
        .into_iter()
        .collect()
}

async fn serve(
    place: &Place<'_>,
    configuration: &Configuration,
    hands: &mut Hands,
) -> Result<Exit, Failure> {
    let settings = &configuration.settings;
    let mut signals = Signals::watch()?;
    let lifeline = hands.lifeline.take().map(Lifeline::watch).transpose()?;
    let server_settings = assembly::server_settings(settings)?;
    let drain = server_settings.limits.drain;
    let log = open_log(settings, place.state()).await?;
    let home = assembly::open_home(place.state()).await?;
    let backends = Backends::start(place, settings).await?;
    let options = assembly::sessions_options(settings, &backends);
    let (sessions, recovery) = Sessions::start_in(home, log.clone(), options)
        .await
        .or_fail(Exit::Start, "cannot take up the sessions of the log")?;
    tell_recovery(recovery);
    tools::equip(&sessions, settings, place.state())?;
    backends.warm_up();
    let server = Server::bind(server_settings, sessions.clone())
        .await
        .map_err(|error| not_bound(&error))?;
    let facade = assembly::openhands_settings(place, settings, &backends);
    let openhands = zareba_server::openhands(&sessions, server.authenticator(), facade).await;
    let openhands = openhands.or_fail(Exit::Start, "cannot prepare OpenHands' routes")?;
    let camel = zareba_server::camel(&sessions, server.authenticator());
    let server = server.with_extension(openhands).with_extension(camel);
    let key_file = admin_key::keep(server.first_key(), place.state())?;
    let published = Published::write(place.state(), &assembly::url(settings, server.endpoint()))?;
    tell(&published, key_file.as_deref());
    if let Some(ready) = hands.ready.take() {
        ready.send();
    }
    server.serve(asked_to_end(&mut signals, lifeline)).await;
    let ended = async {
        sessions.shut_down(drain).await;
        backends.end().await;
    };
    // Whoever asks twice does not want to wait.
    tokio::select! {
        () = ended => {}
        _ = signals.next() => {}
    }
    drop(published);
    let closed = log.store().close().await;
    closed.or_fail(Exit::Failure, "cannot close the event log")?;
    Ok(Exit::Success)
}

/// Why there is no server, and for an address that is taken how to name another.
fn not_bound(error: &BindError) -> Failure {
    let failure = Failure::of(Exit::Start, error).while_doing("cannot start the server");
    let mut causes =
        std::iter::successors(Some(error as &(dyn Error + 'static)), |it| (*it).source());
    let is_taken = causes.any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::AddrInUse)
    });
    match is_taken {
        true => failure.hint(
            "`--listen ADDRESS:PORT` names another address; `zareba serve --stop` ends a server \
             of yours in the background",
        ),
        false => failure,
    }
}

/// Ready when a signal came, or when nobody wants us any more.
async fn asked_to_end(signals: &mut Signals, lifeline: Option<oneshot::Receiver<()>>) {
    let let_go = async {
        match lifeline {
            Some(lifeline) => drop(lifeline.await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = signals.next() => {}
        () = let_go => {}
    }
}

fn tell_recovery(recovery: Recovery) {
    let Recovery {
        found,
        lost,
        in_doubt,
    } = recovery;
    if found + lost + in_doubt > 0 {
        say::note(format_args!(
            "sessions found again: {found}, lost: {lost}; actions that were under way: {in_doubt}"
        ));
    }
}

fn tell(published: &Published, key_file: Option<&Path>) {
    let url = published.url();
    say::note(format_args!("listening on {url}"));
    let Some(file) = key_file.map(Path::display) else {
        say::note("`zareba key create` makes keys for clients");
        return;
    };
    say::note(format_args!("the administrator's key is in {file}"));
    if let Some(path) = url.strip_prefix("unix:") {
        say::words(format_args!(
            "  curl --unix-socket {path} -H \"Authorization: Bearer $(cat {file})\" http://localhost/v1/status"
        ));
    } else {
        say::words(format_args!(
            "  curl -H \"Authorization: Bearer $(cat {file})\" {url}/v1/status"
        ));
    }
}
