//! [`Extension`]: routes of another crate, behind the same checks.

use std::fmt;

use axum::Router;
use zareba_api::Access;

/// Routes of another crate, for instance another project's API over the same sessions.
///
/// Every part has an access class, and the server checks keys before a handler of it runs. What
/// that found is in the request's extensions: a [`Principal`](crate::Principal), and the
/// [`Owner`](zareba_session::Owner) for crates below this one. A handler must ask
/// [`Principal::may_see`](crate::Principal::may_see), or compare owners, before it touches a
/// session. Answers pass through as they are, with the server's headers added.
///
/// ```
/// # use axum::{Router, routing::get};
/// # use zareba_server::{Access, Extension};
/// let routes: Router = Router::new().route("/list", get(|| async { "[]" }));
/// let extension = Extension::new("openhands").with(Access::Session, routes);
/// # let _ = extension;
/// ```
#[must_use = "an extension does nothing until a server has it"]
pub struct Extension {
    pub(crate) name: &'static str,
    pub(crate) parts: Vec<Part>,
}

/// Routes of one access class.
pub(crate) struct Part {
    pub(crate) access: Access,
    pub(crate) router: Router,
}

impl Extension {
    /// An extension without routes; its name is what its requests are counted by.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            parts: Vec::new(),
        }
    }

    /// The same with routes of one class. Their paths must be other than the server's own; a
    /// fallback of the router is left out.
    pub fn with(mut self, access: Access, router: Router) -> Self {
        self.parts.push(Part { access, router });
        self
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Extension")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
