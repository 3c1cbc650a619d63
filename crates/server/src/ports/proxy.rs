//! Carries requests to a program in a sandbox, and its answers back, as streams.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use http::{HeaderValue, Method, StatusCode, Uri, Version, header};
use http_body::Body as _;
use hyper::{
    client::conn::http1::{self, SendRequest},
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::MissedTickBehavior};
use zareba_api::ErrorCode;
use zareba_facades::openhands::Reserved;
use zareba_protocol::ErrorClass;
use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_session::{SessionError, SessionState};
use zareba_wire::serving::{Peer, Takeover, TakeoverEnd, TimedBody};

use super::{
    PREVIEWS,
    headers::{Caller, Foreign, Way, inward, outward, upgrade},
    scheme,
    shares::Visit,
};
use crate::{app::App, error::ApiError};

/// How long a program may take to accept a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to begin its answer, once it has the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// What its headers may have in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;

pub(super) async fn forward(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    // Taken from the path as it came: what follows is the program's, and need not be text.
    let rest = request.uri().path().strip_prefix(PREVIEWS);
    let token = rest.and_then(|rest| rest.split('/').next());
    let token = token.unwrap_or_default().to_owned();
    let visit = app.shares.visit(&token).await?.ok_or_else(unknown)?;
    let key = &visit.sharer.key;
    if !app.authenticator.keys().is_valid(key).await? {
        app.shares.forget_key(key).await;
        return Err(unknown());
    }
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        let message = "shared ports do not take this method";
        return Err(ApiError::new(ErrorCode::MethodNotAllowed, message));
    }
    let prefix = format!("{PREVIEWS}{token}");
    let caller = caller(&app, &request, &token, &visit, &prefix);
    let target = request.uri().path_and_query();
    let target = target.map_or("", |target| target.as_str());
    let target = target.strip_prefix(&prefix).ok_or_else(unknown)?;
    if !target.starts_with('/') && caller.way != Way::Name {
        // A page without the slash would look for its parts beside itself.
        return Ok(redirect(&format!("{prefix}/{target}")));
    }
    let target = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("/{target}"),
    };
    // Visitors have no key of their own: they are the owner's.
    let open = Reserved::new(app.usage().stream(&visit.sharer.owner)?);
    let stream = connect(&app, &visit).await?;
    let sender = handshake(stream).await?;
    let leave = Leave {
        app: Arc::clone(&app),
        visit,
        open,
    };
    carry(sender, request, &target, caller, leave).await
}

/// What a visitor has as long as the visit goes on.
struct Leave {
    app: Arc<App>,
    visit: Visit,
    open: Reserved,
}

impl Leave {
    /// Ready when the port is shared no more, or the key that shared it is not valid any more.
    async fn over(self) {
        let mut checks = tokio::time::interval(self.app.settings.limits.ping_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let keys = self.app.authenticator.keys();
        let (key, token) = (self.visit.sharer.key.clone(), self.visit.token.clone());
        let invalid = async {
            loop {
                checks.tick().await;
                let is_valid = keys.is_valid(&key).await.unwrap_or(false);
                // Another server may have taken it back.
                if !is_valid || !self.app.shares.is_shared(&token).await.unwrap_or(false) {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.visit.over() => {}
            () = invalid => {}
        }
        drop(self.open);
    }
}

fn caller(app: &App, request: &Request, token: &str, visit: &Visit, prefix: &str) -> Caller {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    // The name in front of the preview domain was made the path before routes were looked at.
    let by_name = host.split('.').next() == Some(token);
    Caller {
        way: match by_name {
            true => Way::Name,
            false => Way::Path {
                prefix: prefix.to_owned(),
            },
        },
        port: visit.port,
        host: host.to_owned(),
        scheme: scheme(app),
        address: request.extensions().get::<Peer>().map(|peer| peer.0),
    }
}

fn unknown() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "nothing is shared at this address")
}

fn redirect(place: &str) -> Response {
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// Connects to the port inside. That counts as use of the session, and wakes it.
async fn connect(app: &App, visit: &Visit) -> Result<TcpStream, ApiError> {
    let session = match app.sessions.get(&visit.session).await {
        Err(SessionError::NotFound { .. }) => {
            app.shares.forget(&visit.session).await;
            return Err(unknown());
        }
        found => found?,
    };
    if session.info().state == SessionState::Closed {
        app.shares.forget(&visit.session).await;
        return Err(unknown());
    }
    let connecting = async {
        let sandbox = session.access(visit.sharer.visitor()).await?;
        sandbox
            .connect_port(visit.port)
            .await
            .map_err(|error| refused(error, visit.port))
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    connected.unwrap_or_else(|_| Err(silent()))
}

pub(super) fn refused(error: RuntimeError, port: u16) -> ApiError {
    match error.class() {
        ErrorClass::Invalid => {
            let message = format!("nothing answers on port {port} in the sandbox");
            ApiError::new(ErrorCode::BadGateway, message)
                .with_hint("start the program, and let it listen on 127.0.0.1 or on all addresses")
        }
        ErrorClass::Timeout => silent(),
        _ => error.into(),
    }
}

pub(super) fn silent() -> ApiError {
    ApiError::new(
        ErrorCode::Timeout,
        "the program in the sandbox did not answer in time",
    )
}

fn broken(error: &hyper::Error) -> ApiError {
    tracing::debug!(%error, "a program in a sandbox gave no usable answer");
    let message = "the program in the sandbox gave no usable answer";
    ApiError::new(ErrorCode::BadGateway, message)
}

/// The connection lives in a task that ends with it.
async fn handshake(stream: TcpStream) -> Result<SendRequest<Body>, ApiError> {
    let connected = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, connection) = connected.map_err(|error| broken(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a program in a sandbox ended");
        }
    });
    Ok(sender)
}

async fn carry(
    mut sender: SendRequest<Body>,
    request: Request,
    target: &str,
    caller: Caller,
    leave: Leave,
) -> Result<Response, ApiError> {
    let stall = leave.app.settings.limits.body_stall;
    let (mut head, body) = request.into_parts();
    let invalid = |_| ApiError::invalid("the path of the request makes no sense");
    head.uri = target.parse::<Uri>().map_err(invalid)?;
    head.version = Version::HTTP_11;
    head.extensions.clear();
    let wants_upgrade = upgrade(&head.headers).is_some();
    head.headers = outward(head.headers, &caller);
    let body = match body.is_end_stream() {
        true => Body::empty(),
        false => Body::from_stream(TimedBody::new(body, stall)),
    };
    let sent = sender.send_request(Request::from_parts(head, body));
    let mut answer = tokio::time::timeout(ANSWER_TIMEOUT, sent)
        .await
        .map_err(|_| silent())?
        .map_err(|error| broken(&error))?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        if !wants_upgrade {
            let message = "the program in the sandbox changed the protocol unasked";
            return Err(ApiError::new(ErrorCode::BadGateway, message));
        }
        let inside = hyper::upgrade::on(&mut answer);
        return Ok(switched(answer.into_parts().0, inside, &caller, leave));
    }
    let (head, body) = answer.into_parts();
    // Taken back, it ends in the middle.
    let pieces = Body::new(body).into_data_stream();
    let body = Body::from_stream(pieces.take_until(Box::pin(leave.over())));
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = inward(head.headers, &caller);
    response.extensions_mut().insert(Foreign);
    Ok(response)
}

/// Both connections go on as something else, byte by byte, until either ends or the port is taken
/// back.
fn switched(
    head: http::response::Parts,
    inside: OnUpgrade,
    caller: &Caller,
    leave: Leave,
) -> Response {
    let takeover = Takeover::new(TakeoverEnd::AtDrain, move |mut connection| async move {
        let Ok(inside) = inside.await else {
            return;
        };
        let mut inside = TokioIo::new(inside);
        let both = async {
            tokio::io::AsyncWriteExt::write_all(&mut inside, &connection.read_ahead).await?;
            tokio::io::copy_bidirectional(&mut connection.io, &mut inside).await?;
            Ok::<_, io::Error>(())
        };
        tokio::select! {
            ended = both => if let Err(error) = ended {
                tracing::debug!(%error, "a connection through a shared port ended");
            },
            () = leave.over() => {}
        }
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    *response.body_mut() = Body::empty();
    *response.headers_mut() = inward(head.headers, caller);
    response.extensions_mut().insert(Foreign);
    response.extensions_mut().insert(takeover);
    response
}
