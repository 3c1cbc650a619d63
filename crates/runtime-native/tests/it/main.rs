//! The runtimes `cli`, `local` and `native` against the conformance suite, and what only they promise.
//!
//! `local` and `native` need the `zareba` program: the one that `ZAREBA_BIN` names, or the one that lies
//! where cargo puts it. A missing one is a failure.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod cli;
mod escapes;
mod files;
mod fixture;
mod home_tools;
mod images;
mod kept;
mod limits;
mod local;
mod native;
mod network;
mod paused;
mod programs;
mod spawner;
mod warm;
