//! The list of routes. There is one way to add one, and it asks what it needs.

use std::{future::Future, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{MethodFilter, any, on},
};
use http::{Method, StatusCode};
use zareba_wire::server;

use super::{OpenHands, Principal, Rights, answer::Refusal, executors, images, runtimes};

/// What a request must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A key of the server with these rights at least.
    Key(Rights),
    /// The key of the session, or one of the server that may use the session.
    SessionKey,
}

/// One route of the facade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method it answers.
    pub method: Method,
    /// Its path, with parameters in braces.
    pub path: String,
    /// What a request must have.
    pub needs: Needs,
}

/// Every route of the facade.
pub fn routes() -> Vec<Route> {
    let mut routes = Table::contract().routes;
    routes.extend(server::routes().into_iter().map(|route| Route {
        method: route.method,
        path: format!("/sessions/{{id}}{}", route.path),
        needs: Needs::SessionKey,
    }));
    routes
}

pub(super) fn router(facade: Arc<OpenHands>) -> Router {
    Table::contract()
        .router
        .route("/sessions/{id}/{*rest}", any(executors::serve))
        .with_state(facade)
}

/// The routes of the remote runtime API, listed and built at once.
struct Table {
    router: Router<Arc<OpenHands>>,
    routes: Vec<Route>,
}

impl Table {
    fn contract() -> Self {
        use Rights::{Read, Use};
        let (router, routes) = (Router::new(), Vec::new());
        Self { router, routes }
            .post("/start", Use, runtimes::start)
            .post("/stop", Use, runtimes::stop)
            .post("/pause", Use, runtimes::pause)
            .post("/resume", Use, runtimes::resume)
            .get("/list", Use, runtimes::list)
            .get("/sessions/{id}", Use, runtimes::by_name)
            .get("/runtime/{id}", Read, runtimes::by_id)
            .get("/registry_prefix", Read, images::registry_prefix)
            .get("/image_exists", Read, images::image_exists)
            .post("/build", Use, images::build)
            .get("/build_status", Read, images::build_status)
    }

    fn get<F, A>(self, path: &'static str, rights: Rights, handler: F) -> Self
    where
        F: Fn(Arc<OpenHands>, Principal, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response, Refusal>> + Send,
    {
        self.add((Method::GET, MethodFilter::GET), path, rights, handler)
    }

    fn post<F, A>(self, path: &'static str, rights: Rights, handler: F) -> Self
    where
        F: Fn(Arc<OpenHands>, Principal, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response, Refusal>> + Send,
    {
        self.add((Method::POST, MethodFilter::POST), path, rights, handler)
    }

    fn add<F, A>(
        mut self,
        (method, filter): (Method, MethodFilter),
        path: &'static str,
        rights: Rights,
        handler: F,
    ) -> Self
    where
        F: Fn(Arc<OpenHands>, Principal, Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response, Refusal>> + Send,
    {
        let guarded = move |State(facade): State<Arc<OpenHands>>, request: Request| {
            let handler = handler.clone();
            async move {
                let (head, body) = request.into_parts();
                let principal = facade.keys.principal(&head).await?;
                if principal.rights < rights {
                    let detail = "this key does not allow that";
                    return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
                }
                let open = facade.keys.open(&principal)?;
                let request = Request::from_parts(head, body);
                let mut response = handler(facade, principal, request).await?;
                response.extensions_mut().insert(open);
                Ok(response)
            }
        };
        self.router = self.router.route(path, on(filter, guarded));
        self.routes.push(Route {
            method,
            path: path.to_owned(),
            needs: Needs::Key(rights),
        });
        self
    }
}
