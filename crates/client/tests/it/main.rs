//! The typed client against the whole server, over real sessions.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

#[path = "../../../facades/tests/it/provider.rs"]
#[expect(dead_code, reason = "only its sessions are used here")]
mod provider;
#[path = "../../../runtime-remote/tests/it/site.rs"]
#[expect(dead_code, reason = "nobody looks for traces here")]
mod site;

mod hostile;
mod whole;
