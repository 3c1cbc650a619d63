//! Programs in the user's home, as a sandbox sees them.
//!
//! They are binds: overlayfs takes no directory of a user's own mounts without root, and paths inside have
//! to be those outside, because links and the first lines of scripts name them. The directories above them
//! are made in the sandbox's root and hold nothing else.

use std::path::Path;

use zareba_confine::{Access, Entry, EntryKind, Ownership};

use super::{HOME, entry};
use crate::HomeTools;

/// Where shells that a user logs in with look for settings, below `/etc`.
const PROFILE: &str = "profile.d/zareba-home-tools.sh";

/// What rustup reads below the home inside. Beside them it makes directories, so it cannot be pointed at
/// the home outside.
const OF_RUSTUP: [&str; 2] = [".rustup/toolchains", ".rustup/settings.toml"];

/// What is shown of a home.
pub(super) fn entries(tools: &HomeTools) -> Vec<Entry> {
    let shown = tools.shown.iter().map(|path| {
        // Owners stay as they are: as root, files that only their owner may read stay closed.
        let bind = EntryKind::Bind {
            source: path.clone(),
            access: Access::ReadOnly,
            owner: Ownership::AsItIs,
            is_direct: true,
        };
        entry(path, bind)
    });
    let links = tools.links.iter().map(|(path, target)| {
        let target = target.clone();
        entry(path, EntryKind::Link { target })
    });
    let linked = OF_RUSTUP.iter().filter_map(|name| {
        let target = tools.home.join(name);
        let is_needed = tools.shown.contains(&target) && tools.home != Path::new(HOME);
        is_needed.then(|| entry(Path::new(HOME).join(name), EntryKind::Link { target }))
    });
    shown.chain(links).chain(linked).collect()
}

/// Adds the directories with programs to `PATH` again in a login shell, whose start-up files replace it.
pub(super) fn profile(tools: &HomeTools) -> Option<(&'static str, String)> {
    let lines = tools.search.iter().map(|directory| {
        let directory = directory.display();
        format!(
            "case \":$PATH:\" in *:'{directory}':*) ;; *) PATH=\"$PATH\":'{directory}' ;; esac\n"
        )
    });
    let text: String = lines.collect();
    (!text.is_empty()).then_some((PROFILE, text))
}
