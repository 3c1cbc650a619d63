//! Other people's ways to do the same, measured in the same run where they are installed.

mod bubblewrap;
mod camel;
mod docker;
mod swe_rex;

use std::{env, path::PathBuf};

pub(crate) use bubblewrap::{bubblewrap, unshare};
pub(crate) use camel::{CamelWorkspace, ClientClass};
pub(crate) use docker::DockerImage;
pub(crate) use swe_rex::{Peer, swe_rex};

/// The user's cache directory, as `e2e/foreign/venv.sh` finds it.
fn cache() -> Option<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}
