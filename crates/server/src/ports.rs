//! Ports of a session: what listens, and addresses at which others can look at it.
//!
//! A shared port has a token of 128 random bits, and whoever knows it may use it: as a path of
//! this server (`/p/{token}/…`) or, better for browsers, as a name of its own
//! (`{token}.{preview domain}`), because a page there has an origin of its own. What comes from
//! a sandbox was written by an attacker (G-1): as a path, on the origin of the control plane, a
//! page is confined so that it cannot act as one of ours.

mod connection;
mod headers;
mod listening;
mod proxy;
mod shares;

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::any,
};
use http::{HeaderMap, StatusCode, header::HOST};
use zareba_api::{Access, Port, PortPage, SharedPort};
use zareba_session::Deed;

use crate::{
    Extension,
    app::App,
    auth::Principal,
    error::ApiError,
    handlers::json,
    request::Place,
    settings::{Listen, Transport},
};

pub(crate) use connection::connect;
pub(crate) use headers::Foreign;
pub(crate) use shares::Shares;
use shares::{Sharer, can_be_shared};

/// Where shared ports are as paths.
const PREVIEWS: &str = "/p/";
/// What requests for them are counted and logged by.
pub(crate) const ROUTE: &str = "previews";

/// The routes of shared ports. They take every method, and are no part of the API: what is said
/// there is between the client and a program in a sandbox.
pub(crate) fn previews(app: &Arc<App>) -> Extension {
    let routes = Router::new()
        .route("/p/{token}", any(proxy::forward))
        .route("/p/{token}/", any(proxy::forward))
        .route("/p/{token}/{*rest}", any(proxy::forward))
        .with_state(Arc::clone(app));
    Extension::new(ROUTE).with(Access::Capability, routes)
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let shares = app.shares.of_session(session.id()).await?;
    let sandbox = app.sandbox(&principal, &session).await?;
    let listening = listening::ports(&sandbox).await?;
    let mut ports: Vec<u16> = listening.iter().flatten().copied().collect();
    ports.extend(shares.iter().map(|(port, _)| *port));
    ports.sort_unstable();
    ports.dedup();
    let described = ports.into_iter().map(|port| {
        let share = shares.iter().find(|(shared, _)| *shared == port);
        Port {
            port,
            listening: listening.as_ref().map(|ports| ports.contains(&port)),
            share: share.map(|(_, token)| address(&app, &headers, port, token)),
        }
    });
    let page = PortPage {
        ports: described.collect(),
    };
    Ok(json(StatusCode::OK, &page))
}

pub(crate) async fn share(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, port)): Place<(String, u16)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if port == 0 {
        return Err(ApiError::invalid("0 is no port"));
    }
    let session = app.session(&principal, &session).await?;
    let state = session.info().state;
    if !can_be_shared(state) {
        let message = format!("the session is {}", state.as_str());
        return Err(ApiError::new(zareba_api::ErrorCode::Conflict, message));
    }
    let sharer = Sharer {
        owner: session.info().owner,
        key: principal.key.clone(),
    };
    let share = app.shares.share(session.id(), port, sharer);
    let deed = Deed::SharePort { port };
    let token = app.admitted(&principal, &session, deed, share).await?;
    Ok(json(StatusCode::OK, &address(&app, &headers, port, &token)))
}

pub(crate) async fn unshare(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, port)): Place<(String, u16)>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let unshare = app.shares.unshare(session.id(), port);
    let deed = Deed::UnsharePort { port };
    app.admitted(&principal, &session, deed, unshare).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The address as this client can reach it: at the port that it has used itself.
fn address(app: &App, headers: &HeaderMap, port: u16, token: &str) -> SharedPort {
    let path = format!("{PREVIEWS}{token}/");
    let scheme = scheme(app);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let url = match (&app.settings.listen, host) {
        (Listen::Tcp { .. }, Some(host)) => {
            let domain = &app.settings.preview_domain;
            let used = host.rsplit_once(':').map(|(_, port)| port);
            match used.filter(|port| port.parse::<u16>().is_ok()) {
                Some(used) => format!("{scheme}://{token}.{domain}:{used}/"),
                None => format!("{scheme}://{token}.{domain}/"),
            }
        }
        // No browser opens a Unix socket.
        _ => path.clone(),
    };
    SharedPort { port, path, url }
}

/// What browsers say before the name of this server.
fn scheme(app: &App) -> &'static str {
    match &app.settings.listen {
        Listen::Tcp {
            transport: Transport::Tls(_) | Transport::BehindTlsProxy,
            ..
        } => "https",
        Listen::Tcp { .. } | Listen::Unix(_) => "http",
    }
}
