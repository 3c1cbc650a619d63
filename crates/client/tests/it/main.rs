//! The typed client against the whole server, over real sessions.

#[path = "../../../facades/tests/it/provider.rs"]
#[expect(dead_code, reason = "only its sessions are used here")]
mod provider;
#[path = "../../../runtime-remote/tests/it/site.rs"]
#[expect(dead_code, reason = "nobody looks for traces here")]
mod site;

mod hostile;
mod whole;
