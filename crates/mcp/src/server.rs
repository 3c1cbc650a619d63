//! A sandbox as a server of tools.
//!
//! `catalog` says what there is, `arguments` what each takes, `perform` turns a call into actions
//! and `answer` what came of them into text that fits a model. [`serve_stdio`] and [`HttpServer`]
//! are the two ways in.

mod answer;
mod arguments;
mod catalog;
mod changes;
mod command;
mod files;
mod handler;
mod http;
mod perform;
mod place;
mod registered;
mod stdio;
mod veil;
mod watch;

pub use handler::{ServerOptions, ToolServer};
pub use http::{HttpOptions, HttpServer, Token};
pub use place::{PlaceError, Workplace};
pub use stdio::{StdioError, serve_stdio};
pub use veil::Hide;
