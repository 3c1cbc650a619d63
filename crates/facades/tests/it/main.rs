//! The facades over real sessions, a real log and a real runtime, by HTTP.
//!
//! `native` needs the `zareba` program: the one that `ZAREBA_BIN` names, or the one that lies where
//! cargo puts it. A missing one is a failure.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod client;
mod provider;

mod access;
mod builds;
mod camel;
mod executor;
mod remote_api;
