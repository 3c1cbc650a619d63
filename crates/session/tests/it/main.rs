//! Sessions over real runtimes and a real log.
//!
//! `local` and `native` need the `zareba` program: the one that `ZAREBA_BIN` names, or the one that
//! lies where cargo puts it. A missing one is a failure.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod actions;
mod away;
mod backend;
mod deeds;
mod fixture;
mod guard;
mod life;
mod limits;
mod mcp;
mod postgres;
mod recovery;
mod secrets;
mod setup;
mod terminals;
mod time;
mod tools;
