//! Remote sandboxes, against real servers over real runtimes.
//!
//! `native` needs the `zareba` program: the one that `ZAREBA_BIN` names, or the one that lies where
//! cargo puts it. A missing one is a failure.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

#[path = "../../../facades/tests/it/provider.rs"]
#[expect(dead_code, reason = "nobody takes a key away here")]
mod provider;

mod openhands;
mod programs;
mod remote_files;
mod site;
mod zareba;
