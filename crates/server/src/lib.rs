//! The control plane: sessions over HTTP, with keys, streams and limits.
//!
//! A request passes, in this order: the accept loop of `zareba-wire` (how many connections, how
//! long), `gate` (request id, host, origin, overload, the net under panics), the route's
//! own check of who asks (`routes`, `auth`), and a handler, which translates and delegates to a
//! `Session`. Routes exist only as rows of `zareba-api`'s table, each with its access class.
//! Errors travel as values to the gate, which writes the one error body.
//!
//! Start reading at [`Server`]; [`Keys`] and [`Extension`] are the other two doors.
#![deny(missing_docs)]

mod camel;
mod extension;
mod keys;
mod openhands;
mod server;
mod settings;
mod traces;

mod app;
mod auth;
mod error;
mod gate;
mod held;
mod names;
mod request;
mod routes;
mod telemetry;
mod tickets;
mod tls;
mod upgrade;
mod usage;
mod websocket;

mod convert;
mod events;
mod files;
mod handlers;
mod outputs;
mod ports;
mod programs;
mod terminals;

pub use auth::{Authenticator, Denied, Principal};
pub use camel::camel;
pub use error::ApiError;
pub use extension::Extension;
pub use keys::{KeyError, Keys};
pub use openhands::openhands;
pub use server::{BindError, Server};
pub use settings::{Limits, Listen, ServerSettings, TlsFiles, Transport};
pub use tls::{Tls, TlsError};
pub use traces::{TraceError, TraceSettings, Traces};
pub use zareba_api::{Access, CreateKey, CreatedKey, Key, KeyQuota, KeyScope};
pub use zareba_facades::openhands::OpenHandsSettings;
