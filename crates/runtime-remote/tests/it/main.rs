//! Remote sandboxes, against real servers over real runtimes.

#[path = "../../../facades/tests/it/provider.rs"]
mod provider;

mod openhands;
mod site;
mod zareba;
