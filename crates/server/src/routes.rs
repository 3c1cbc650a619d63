//! The one way to add a route: a row of the table, with its access class, and a handler.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State},
    handler::Handler,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, on},
};
use http::{HeaderMap, HeaderValue, header::CONNECTION};
use zareba_api::{Access, Deadline, ErrorCode, Method, Operation};
use zareba_facades::openhands::Reserved;
use zareba_wire::serving::Peer;

use crate::{
    Extension,
    app::App,
    auth::{Denied, Principal},
    error::ApiError,
    held::hold,
};

/// The route that answered, in the extensions of every answer: what requests are counted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteName(pub(crate) &'static str);

/// The key that was used, in the extensions of an answer: what the log says.
#[derive(Clone, Debug)]
pub(crate) struct KeyName(pub(crate) String);

/// Routes as they are added.
pub(crate) struct RouteTable {
    app: Arc<App>,
    router: Router<Arc<App>>,
    extensions: Router,
}

/// What a route's check knows.
#[derive(Clone)]
struct Entry {
    app: Arc<App>,
    name: &'static str,
    access: Access,
    deadline: Deadline,
}

impl Entry {
    /// Whether requests may stay open as long as their client likes. What ends things does not,
    /// and must work for whoever has all places taken.
    fn may_stay(&self, request: &Request) -> bool {
        self.deadline == Deadline::Long && request.method() != http::Method::DELETE
    }
}

impl RouteTable {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self {
            app,
            router: Router::new(),
            extensions: Router::new(),
        }
    }

    /// Mounts a handler on a row of the table, behind the check that the row asks for.
    pub(crate) fn add<H, T>(mut self, operation: &'static Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = match operation.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        };
        let entry = Entry {
            app: Arc::clone(&self.app),
            name: operation.path,
            access: operation.access,
            deadline: operation.deadline,
        };
        let checked = on(filter, handler).layer(from_fn_with_state(entry, enter));
        self.router = self.router.route(operation.path, checked);
        self
    }

    /// Mounts the routes of an extension, each behind the check of its class.
    pub(crate) fn extend(mut self, extension: Extension) -> Self {
        for part in extension.parts {
            let entry = Entry {
                app: Arc::clone(&self.app),
                name: extension.name,
                access: part.access,
                deadline: Deadline::Long,
            };
            let checked = part
                .router
                .reset_fallback()
                .route_layer(from_fn_with_state(entry, enter));
            self.extensions = self.extensions.merge(checked);
        }
        self
    }

    /// Whatever is not in the table needs a key and is then not found.
    pub(crate) fn into_router(self) -> Router {
        self.router
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .with_state(self.app)
            .merge(self.extensions)
    }
}

/// The check in front of every handler.
async fn enter(State(entry): State<Entry>, request: Request, next: Next) -> Response {
    let admitted = admit(&entry.app, entry.access, Asker::of(&request)).await;
    let mut response = match admitted {
        Err(refusal) => refusal.into_response(),
        Ok(None) => within(&entry, next.run(request)).await,
        Ok(Some(principal)) => {
            let key = KeyName(principal.key.clone());
            let mut response = handle(&entry, principal, request, next).await;
            response.extensions_mut().insert(key);
            response
        }
    };
    response.extensions_mut().insert(RouteName(entry.name));
    hold(response)
}

/// Lets a handler answer, within what its owner may have open at once.
async fn handle(entry: &Entry, principal: Principal, mut request: Request, next: Next) -> Response {
    let place = match entry.may_stay(&request) {
        false => None,
        true => match entry.app.usage().stream(&principal.owner) {
            Ok(place) => Some(Reserved::new(place)),
            Err(exhausted) => return turned_away(exhausted.into()),
        },
    };
    let extensions = request.extensions_mut();
    extensions.insert(principal.owner.clone());
    extensions.insert(principal);
    if let Some(place) = &place {
        extensions.insert(place.clone());
    }
    let mut response = within(entry, next.run(request)).await;
    if let Some(place) = place {
        response.extensions_mut().insert(place);
    }
    response
}

/// The connection ends too: it would otherwise be one more that is open.
fn turned_away(refusal: ApiError) -> Response {
    let mut response = refusal.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

async fn within(entry: &Entry, handled: impl Future<Output = Response>) -> Response {
    match entry.deadline {
        Deadline::Long => handled.await,
        Deadline::Short => {
            let limit = entry.app.settings.limits.request_timeout;
            match tokio::time::timeout(limit, handled).await {
                Ok(response) => response,
                Err(_) => {
                    let message = format!("the request was not answered within {limit:?}");
                    ApiError::new(ErrorCode::Timeout, message).into_response()
                }
            }
        }
    }
}

async fn admit(app: &App, access: Access, asker: Asker<'_>) -> Result<Option<Principal>, ApiError> {
    if matches!(access, Access::Public | Access::Capability) {
        return Ok(None);
    }
    let takes_tickets = matches!(access, Access::ReadOrTicket | Access::SessionOrTicket);
    let principal = match asker.ticket() {
        Some(ticket) if takes_tickets => match app.tickets.redeem(&ticket) {
            // The key may have been removed since.
            Some(principal) if app.authenticator.keys().is_valid(&principal.key).await? => {
                principal
            }
            _ => return Err(app.authenticator.wrong_key(asker.source).into()),
        },
        _ => asker.authenticate(app).await?,
    };
    if principal.may(access) {
        return Ok(Some(principal.claiming(asker.headers)));
    }
    let scope = match access {
        Access::Admin => "admin",
        _ => "session",
    };
    let message = format!("this needs a key with the scope `{scope}`");
    Err(ApiError::forbidden(message))
}

/// What a request shows of whoever sent it.
struct Asker<'a> {
    headers: &'a HeaderMap,
    query: Option<&'a str>,
    source: IpAddr,
}

impl<'a> Asker<'a> {
    fn of(request: &'a Request) -> Self {
        let peer = request.extensions().get::<Peer>();
        Self {
            headers: request.headers(),
            query: request.uri().query(),
            source: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0),
        }
    }

    fn ticket(&self) -> Option<String> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(self.query?).ok()?;
        let mut tickets = pairs.into_iter().filter(|(name, _)| name == "ticket");
        tickets.next().map(|(_, ticket)| ticket)
    }

    async fn authenticate(&self, app: &App) -> Result<Principal, Denied> {
        let authenticator = &app.authenticator;
        authenticator.authenticate(self.headers, self.source).await
    }
}

async fn not_found(State(app): State<Arc<App>>, request: Request) -> ApiError {
    let asker = Asker::of(&request);
    match asker.authenticate(&app).await {
        Err(denied) => denied.into(),
        Ok(_) => ApiError::new(ErrorCode::NotFound, "there is nothing at this path")
            .with_hint("see `/v1/openapi.json`"),
    }
}

async fn method_not_allowed(State(app): State<Arc<App>>, request: Request) -> ApiError {
    let asker = Asker::of(&request);
    match asker.authenticate(&app).await {
        Err(denied) => denied.into(),
        Ok(_) => {
            let message = format!("this path does not take {}", request.method());
            ApiError::new(ErrorCode::MethodNotAllowed, message)
        }
    }
}
