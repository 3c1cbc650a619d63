//! The list of routes. There is one way to add one, and it asks who may use it.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    handler::Handler,
    response::{IntoResponse as _, Response},
    routing::{MethodFilter, on},
};
use http::{Method, StatusCode};

use super::{
    answer::Refusal,
    files::{self, paths},
    handlers::{self, Surface},
    output, programs, tools, transfer, variables,
};

/// Who may use a route when the server has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone, by contract. The route must change nothing and tell nothing of the workspace.
    Public,
    /// Those who send the session key.
    SessionKey,
}

/// One route of the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method it answers.
    pub method: Method,
    /// Its path, without parameters.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
}

/// Every route that a server has. Whatever is not listed needs the key and is then not found.
pub fn routes() -> Vec<Route> {
    RouteTable::contract().routes
}

/// Builds the table of routes, for a process that copies itself: its copies need not.
pub fn prepare_routes() {
    CONTRACT.get_or_init(RouteTable::build);
}

static CONTRACT: OnceLock<RouteTable> = OnceLock::new();

/// The routes, listed and built at once, so that neither can be without the other.
#[derive(Clone)]
pub(super) struct RouteTable {
    router: Router<Arc<Surface>>,
    routes: Vec<Route>,
}

impl RouteTable {
    pub(super) fn contract() -> Self {
        CONTRACT.get().cloned().unwrap_or_else(Self::build)
    }

    fn build() -> Self {
        let Self { router, routes } = Self::listed();
        // Last: it is for the routes that are there.
        let router = router
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed);
        Self { router, routes }
    }

    fn listed() -> Self {
        use Access::{Public, SessionKey};
        Self {
            router: Router::new(),
            routes: Vec::new(),
        }
        .get("/alive", Public, handlers::alive)
        .get("/server_info", Public, handlers::server_info)
        .post("/execute_action", SessionKey, handlers::execute_action)
        .post("/list_files", SessionKey, handlers::list_files)
        .post("/upload_file", SessionKey, transfer::upload_file)
        .get("/download_files", SessionKey, transfer::download_files)
        .get(
            "/vscode/connection_token",
            SessionKey,
            handlers::vscode_connection_token,
        )
        .post("/update_mcp_server", SessionKey, tools::update)
        .get("/mcp/sse", SessionKey, tools::events)
        .get("/sse", SessionKey, tools::events)
        .post("/mcp/messages/", SessionKey, tools::message)
        .post("/messages/", SessionKey, tools::message)
        .post("/programs", SessionKey, programs::start_program)
        .get(output::OUTPUT_ROUTE, SessionKey, output::read)
        .post(output::STOP_ROUTE, SessionKey, output::stop)
        .post(variables::ROUTE, SessionKey, variables::set)
        .get(paths::STATUS, SessionKey, files::status)
        .get(paths::CONTENT, SessionKey, files::content)
        .put(paths::CONTENT, SessionKey, files::store)
        .get(paths::ENTRIES, SessionKey, files::entries)
        .delete(paths::REMOVAL, SessionKey, files::remove)
        .post(paths::DIRECTORIES, SessionKey, files::make_directory)
        .post(paths::RENAMES, SessionKey, files::rename)
        .get(paths::WATCH, SessionKey, files::watch)
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    pub(super) fn into_router(self, surface: Arc<Surface>) -> Router {
        self.router.with_state(surface)
    }

    fn get<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Arc<Surface>>,
        T: 'static,
    {
        self.add(Method::GET, MethodFilter::GET, path, access, handler)
    }

    fn post<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Arc<Surface>>,
        T: 'static,
    {
        self.add(Method::POST, MethodFilter::POST, path, access, handler)
    }

    fn put<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Arc<Surface>>,
        T: 'static,
    {
        self.add(Method::PUT, MethodFilter::PUT, path, access, handler)
    }

    fn delete<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Arc<Surface>>,
        T: 'static,
    {
        self.add(Method::DELETE, MethodFilter::DELETE, path, access, handler)
    }

    fn add<H, T>(
        mut self,
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Surface>>,
        T: 'static,
    {
        self.router = self.router.route(path, on(filter, handler));
        self.routes.push(Route {
            method,
            path,
            access,
        });
        self
    }
}

async fn not_found() -> Response {
    Refusal::new(StatusCode::NOT_FOUND, "Not Found").into_response()
}

async fn method_not_allowed() -> Response {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed").into_response()
}
