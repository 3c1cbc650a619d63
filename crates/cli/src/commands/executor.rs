//! `zareba executor`: the executor behind its HTTP server, from start to a clean end.
//!
//! `serve` is the life of it; the other files are the parts: who shells run as (`identity`),
//! whose the working directory is (`ownership`), the login user of the
//! audit log (`login`), where to listen (`listening`), what tells us to
//! stop (`stopping`), the file viewer (`viewer`), servers of tools (`equipped`) and what the contract says
//! of plugins (`plugins`).

mod equipped;
mod identity;
mod listening;
mod login;
mod ownership;
mod plugins;
mod serve;
mod stopping;
mod viewer;

pub(crate) use serve::perform;
