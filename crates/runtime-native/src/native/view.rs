//! What a sandbox sees: the tools of this machine or of an image, an identity, a home and a
//! workspace.
//!
//! Only what is listed here exists inside. Homes, `/run`, `/var`, `/sys`, sockets, keys and our
//! own state are not hidden: they are not there (NS-4). System directories appear as overlays in
//! either mode, for one more reason than copying on write: a socket or a pipe that lies below an
//! overlay is another one inside, with nobody at its other end, whereas through a bind it is the
//! very same.

mod divided;
mod generated;
mod home;
mod image;
mod machine;
mod places;
mod secrets;
mod skeleton;
mod workspace;

use std::{
    fs::{self, File},
    io,
    net::IpAddr,
    path::{Path, PathBuf},
};

use zareba_confine::{Entry, EntryKind, Identity, Ownership, Root};

use crate::HomeTools;

pub(crate) use zareba_runtime::{WorkspaceMode, guarded::remove as remove_stand_ins};

/// The name of the sandbox's user.
pub(crate) const USER: &str = "agent";

/// Where it lives.
pub(crate) const HOME: &str = "/home/agent";

/// Where it works.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Where the executor keeps what it needs, on the disk and not in memory: whole outputs are
/// large.
pub(crate) const STATE: &str = "/run/zareba";

/// Whose programs, libraries and settings a sandbox has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// This machine's.
    Machine {
        /// What may be done to them.
        system: SystemMode,
    },
    /// Those of an image, which are all that there is; they can be changed, inside.
    Image {
        /// Its layers as directories, the top one first.
        layers: Vec<PathBuf>,
    },
}

/// What may be done to the machine's programs, libraries and settings, as seen inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemMode {
    /// Files can be added, replaced and removed. Changes stay in the sandbox, and go with it.
    CopyOnWrite,
    /// Nothing.
    ReadOnly,
}

/// Who answers questions for addresses of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver<'a> {
    /// Nobody.
    None,
    /// Servers at these addresses.
    At(&'a [IpAddr]),
    /// Those that answer this machine.
    LikeTheMachine,
}

/// What a sandbox shall see.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Whose programs it has.
    pub(crate) view: &'a View,
    /// Who it is.
    pub(crate) identity: Identity,
    /// Its private directory outside, which is there and is ours.
    pub(crate) directory: &'a Path,
    /// A directory of this machine to work in; `None` is an empty one.
    pub(crate) workspace: Option<&'a Path>,
    /// How that appears.
    pub(crate) mode: WorkspaceMode,
    /// Names in it that cannot be made or changed if changes reach the machine.
    pub(crate) guarded: &'a [String],
    /// Programs in the user's home that are seen beside those of this machine.
    pub(crate) tools: Option<&'a HomeTools>,
    /// Who answers for names.
    pub(crate) resolver: Resolver<'a>,
}

/// What is put into its policy.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The root itself.
    pub(crate) root: Root,
    /// Everything in it.
    pub(crate) entries: Vec<Entry>,
    /// Held as long as the sandbox is there: others may not remove what it stands on.
    pub(crate) lease: Option<File>,
    /// The same, for directories that were made in the workspace.
    pub(crate) workspace_lock: Option<File>,
}

/// Looks at this machine ahead of those who are copies of this process.
pub(super) fn look_ahead() {
    machine::look_ahead();
}

/// Makes what the sandboxes of a state directory share, ahead of the first of them.
pub(super) fn lay_ground(state: &Path, identity: Identity) -> io::Result<()> {
    machine::lay_ground(state, identity)
}

/// Makes the directories and files of a sandbox outside, and says what is where inside.
pub(crate) fn see(request: &Request<'_>) -> io::Result<Seen> {
    let places = places::Places::make(request.directory, request.identity)?;
    let mut seen = match request.view {
        View::Machine { system } => machine::see(&places, request, *system)?,
        View::Image { layers } => image::see(&places, request, layers)?,
    };
    seen.entries.push(memory("/run", 0o755));
    seen.entries.push(entry(STATE, places.own("state")?));
    seen.entries.push(memory(HOME, 0o700));
    let (entries, lock) = workspace::entries(&places, request)?;
    seen.entries.extend(entries);
    if let Some(tools) = request.tools {
        seen.entries.extend(home::entries(tools));
    }
    seen.workspace_lock = lock;
    Ok(seen)
}

fn entry(inside: impl AsRef<Path>, kind: EntryKind) -> Entry {
    Entry {
        inside: inside.as_ref().to_owned(),
        kind,
    }
}

fn memory(inside: &str, mode: u32) -> Entry {
    entry(inside, EntryKind::Memory { mode })
}

/// Files of whoever owns a directory shall be the sandbox's own. Without root that is ourselves
/// anyway.
fn owned_alike(path: &Path) -> io::Result<Ownership> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path)?;
    Ok(Ownership::Mapped {
        uid: found.uid(),
        gid: found.gid(),
    })
}

#[cfg(test)]
mod view_tests;
