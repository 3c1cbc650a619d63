//! What the same work costs without us: the least that any executor could take.

mod bash;
mod echo;
mod engine;
mod group;
mod http;
mod replace;
mod sync;
mod terminal;

pub(crate) use bash::{Bash, BashStart, RcFile};
pub(crate) use echo::Echo;
pub(crate) use engine::BareEngine;
pub(crate) use group::Group;
pub(crate) use http::FileServer;
pub(crate) use replace::Replace;
pub(crate) use sync::Sync;
pub(crate) use terminal::drain;
