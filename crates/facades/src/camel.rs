//! CAMEL's tool server over tools of ours, so that its clients need no change.
//!
//! Each tool is `POST /<name>` with `{"args": […], "kwargs": {…}}`; its answer has the result as
//! JSON inside JSON. Routes, status codes and bodies are those of CAMEL's `api.py`, with what its
//! framework says of requests that make no sense. Better on purpose are: asynchronous tools are
//! awaited, what a tool prints reaches its own caller only, a tool that ends its process costs one
//! call and not the server, and `/openapi.json` has the schema of each tool.
//!
//! Reading order: `toolbox` and `session` are what is served, `route` and `body` are what can be asked, `server`
//! is a listener of its own. Whoever has an accept loop already uses [`Camel::answer`].

mod answer;
#[expect(
    clippy::result_large_err,
    reason = "a refusal is the answer that is sent, and is never passed far"
)]
mod body;
mod openapi;
mod page;
mod python_json;
mod route;
#[expect(
    clippy::result_large_err,
    reason = "a refusal is the answer that is sent, and is never passed far"
)]
mod server;
mod session;
mod toolbox;

use std::{sync::Arc, time::Duration};

use axum::{extract::Request, response::Response};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zareba_tools::{Call, ToolError};
use zareba_wire::{
    server::{BODY_STALL, JSON_BYTES_MAX},
    serving::{TimedBody, linger},
};

pub use server::{Access, CamelServer};
pub use session::ToolsOfSession;
pub use toolbox::{LoadedTools, Toolbox};

use body::Asked;
use route::{Page, Route};

/// How calls are treated.
#[derive(Clone, Debug)]
pub struct CamelOptions {
    /// Whether arguments are checked against the schema of their tool. The original passes them on
    /// as they are, and so do we unless somebody asks.
    pub is_strict: bool,
    /// How long a call may take; the original has no limit.
    pub timeout: Option<Duration>,
    /// What a body may have in bytes.
    pub body_bytes_max: usize,
    /// How long a body may pause.
    pub body_stall: Duration,
}

impl Default for CamelOptions {
    fn default() -> Self {
        Self {
            is_strict: false,
            timeout: None,
            body_bytes_max: JSON_BYTES_MAX,
            body_stall: BODY_STALL,
        }
    }
}

/// CAMEL's tool server over a [`Toolbox`].
#[derive(Clone)]
pub struct Camel {
    tools: Arc<dyn Toolbox>,
    options: CamelOptions,
}

impl Camel {
    /// Serves what is in `tools`.
    pub fn new(tools: Arc<dyn Toolbox>, options: CamelOptions) -> Self {
        Self { tools, options }
    }

    /// Answers one request. `path` is what is asked for below the place where these routes are, and
    /// begins with a slash. Dropping the future ends the call.
    pub async fn answer(&self, path: &str, request: Request) -> Response {
        let has_tool = |name: &str| self.tools.has(name);
        match route::find(path, has_tool) {
            Route::Tool(name) if request.method() == Method::POST => {
                self.call(&name, request).await
            }
            Route::Page(page) if page.is_for(request.method()) => self.show(page),
            Route::Tool(_) => {
                self.refuse(request, answer::method_not_allowed("POST"))
                    .await
            }
            Route::Page(page) => {
                let refusal = answer::method_not_allowed(page.methods());
                self.refuse(request, refusal).await
            }
            Route::SlashLess => {
                let location = route::without_slashes(request.uri());
                self.refuse(request, answer::elsewhere(&location)).await
            }
            Route::None => self.refuse(request, answer::not_found()).await,
        }
    }

    fn show(&self, page: Page) -> Response {
        match page {
            Page::Health => answer::document(StatusCode::OK, &self.health()),
            Page::OpenApi => {
                let document = openapi::document(&self.tools.definitions());
                answer::document(StatusCode::OK, &document)
            }
            Page::Docs | Page::Redoc => answer::page(page::of(&self.tools.definitions())),
        }
    }

    /// What the original says, and what it keeps to itself: the entrypoints that gave nothing.
    fn health(&self) -> Value {
        let definitions = self.tools.definitions();
        let endpoints: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
        let mut health = json!({
            "status": "ok",
            "toolkits": self.tools.toolkits(),
            "endpoints": endpoints,
        });
        let failures = self.tools.failures();
        if !failures.is_empty() {
            let told = failures.iter().map(|failure| {
                json!({
                    "entrypoint": failure.entrypoint,
                    "type": failure.kind,
                    "message": failure.message,
                })
            });
            health["failures"] = told.collect();
        }
        health
    }

    async fn call(&self, name: &str, request: Request) -> Response {
        let CamelOptions {
            is_strict,
            timeout,
            body_bytes_max,
            body_stall,
        } = self.options;
        let Asked {
            arguments,
            with_stdout,
        } = match body::read(request, name, body_bytes_max, body_stall).await {
            Ok(asked) => asked,
            Err(refusal) => return refusal,
        };
        let call = Call {
            arguments,
            timeout,
            is_validated: is_strict,
        };
        match self.tools.call(name, call).await {
            Ok(returned) if with_stdout => {
                let told = json!({ "output": returned.json, "stdout": returned.stdout });
                answer::document(StatusCode::OK, &told)
            }
            Ok(returned) => answer::document(StatusCode::OK, &json!({ "output": returned.json })),
            Err(error) => failure(name, &error),
        }
    }

    /// A body that nobody reads would cost its sender the connection, and the answer with it.
    async fn refuse(&self, request: Request, refusal: Response) -> Response {
        linger(TimedBody::new(request.into_body(), self.options.body_stall)).await;
        refusal
    }
}

impl std::fmt::Debug for Camel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Camel")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The text of an exception is all that the original tells of it.
fn failure(name: &str, error: &ToolError) -> Response {
    match error {
        ToolError::Raised(exception) => answer::failed(&exception.message),
        ToolError::NotJson(result) => answer::failed(&result.message),
        ToolError::Exited(_) => answer::exited(),
        ToolError::NotFound { .. } => answer::not_found(),
        ToolError::Invalid { problems, .. } => {
            let told = problems
                .iter()
                .map(|problem| json!({ "type": "value_error", "loc": ["body"], "msg": problem }));
            answer::unfit(told.collect())
        }
        other => {
            tracing::warn!(tool = name, error = %other, "a tool could not be called");
            answer::failed(&other.to_string())
        }
    }
}
