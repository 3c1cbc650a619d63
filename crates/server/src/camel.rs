//! CAMEL's tool server over the tools of each session.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
    routing::any,
};
use http::Method;
use http_body::Body as _;
use zareba_api::Access;
use zareba_facades::camel::{Camel, CamelOptions, ToolsOfSession};
use zareba_session::{Sessions, Surface};
use zareba_wire::server::JSON_BYTES_MAX;

use crate::{Authenticator, Extension, Principal, app, error::ApiError, request::Place};

/// The routes of CAMEL's tool server below `/sessions/{id}/camel` of every session, for
/// [`Server::with_extension`](crate::Server::with_extension). They need a key of the server that
/// may use the session, which CAMEL's own client cannot send.
pub fn camel(sessions: &Sessions, authenticator: &Authenticator) -> Extension {
    let shared = Arc::new(Shared {
        sessions: sessions.clone(),
        authenticator: authenticator.clone(),
    });
    let router = Router::new()
        .route("/sessions/{id}/camel", any(root))
        .route("/sessions/{id}/camel/", any(root))
        .route("/sessions/{id}/camel/{*path}", any(below))
        .with_state(shared);
    Extension::new("camel").with(Access::Session, router)
}

struct Shared {
    sessions: Sessions,
    authenticator: Authenticator,
}

async fn root(
    State(shared): State<Arc<Shared>>,
    principal: Principal,
    Place(id): Place<String>,
    request: Request,
) -> Response {
    let answered = shared.answer(&principal, &id, "/", request).await;
    answered.unwrap_or_else(ApiError::into_response)
}

async fn below(
    State(shared): State<Arc<Shared>>,
    principal: Principal,
    Place((id, path)): Place<(String, String)>,
    request: Request,
) -> Response {
    let path = format!("/{path}");
    let answered = shared.answer(&principal, &id, &path, request).await;
    answered.unwrap_or_else(ApiError::into_response)
}

impl Shared {
    async fn answer(
        &self,
        principal: &Principal,
        name: &str,
        path: &str,
        request: Request,
    ) -> Result<Response, ApiError> {
        let session = app::session(&self.sessions, principal, name).await?;
        let usage = self.authenticator.usage();
        let announced = request.body().size_hint().exact();
        let bytes = announced.map_or(JSON_BYTES_MAX, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        });
        // What is too large anyway is refused by reading it, without a place.
        let _place = match bytes {
            1..=JSON_BYTES_MAX => usage.body(&principal.owner, bytes)?,
            _ => None,
        };
        if request.method() == Method::POST {
            usage.action(&principal.owner, principal.quota.actions_per_minute)?;
        }
        let log = self.sessions.log().clone();
        let tools = ToolsOfSession::new(session, log, principal.requester(Surface::Camel));
        let camel = Camel::new(Arc::new(tools), CamelOptions::default());
        Ok(camel.answer(path, request).await)
    }
}
