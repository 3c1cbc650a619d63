//! Other people's ways to do the same, measured in the same run where they are installed.

mod bubblewrap;
mod docker;
mod swe_rex;

pub(crate) use bubblewrap::bubblewrap;
pub(crate) use docker::DockerImage;
pub(crate) use swe_rex::{Peer, swe_rex};
