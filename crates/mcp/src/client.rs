//! Tools of other people's servers.
//!
//! A server runs inside the sandbox and talks on its standard streams (`program`), or is
//! elsewhere and reached by HTTP (`http`, and `events` for the older form). [`McpServers`] keeps
//! the connections, `lookout` waits for none of them for long, `listing` judges what a server says it has, [`Pins`] remembers what was
//! accepted. Whatever a server sends is hostile: it is bounded in size, number and time, and a
//! tool whose definition is not the accepted one cannot be called.

mod connection;
mod events;
mod http;
mod listing;
mod lookout;
mod pins;
mod program;
mod restrained;
mod server;
mod servers;
mod spec;
mod tool;

pub use pins::{PinError, Pins};
pub use servers::{McpServers, Naming, Problem};
pub use spec::{InvalidServer, Reach, RemoteKey, ServerSpec};

pub(crate) use server::{CallError, Server};
