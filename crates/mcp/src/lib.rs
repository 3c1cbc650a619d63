//! The Model Context Protocol both ways.
//!
//! [`server`] gives the clients of that protocol (Claude, Cursor, VS Code and their like) a
//! sandbox: its shells, its files and the tools of a registry. [`client`] takes tools from other
//! people's servers, which run inside a sandbox or are reached by HTTP. [`proxy`] puts servers
//! that run inside a sandbox behind the one address that OpenHands' client looks for.
//!
//! Nothing here knows what an action means: a call becomes an action, and its observation a text.
#![deny(missing_docs)]

pub mod client;
pub mod proxy;
pub mod server;
