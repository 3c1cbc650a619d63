//! Directories and volumes that are mounted into a sandbox: how they are written, and which never
//! are (DK-2).

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Something that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// What is mounted.
    pub source: VolumeSource,
    /// Where it is inside.
    pub target: PathBuf,
    /// What programs inside may do with it.
    pub mode: VolumeMode,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeSource {
    /// A file or directory of this machine.
    Host(PathBuf),
    /// A volume of the Engine, made when missing; it stays when the sandbox goes.
    Named(String),
}

/// What programs inside may do with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeMode {
    /// Look at it.
    ReadOnly,
    /// Change it.
    ReadWrite,
    /// Change a copy of it that goes with the sandbox.
    Overlay,
}

/// Why a volume is not mounted.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// It is not written like one.
    #[error("`{text}` is no volume: write `HOST:CONTAINER[:MODE]` with the mode ro, rw or overlay")]
    Syntax {
        /// What was written.
        text: String,
    },
    /// It is not there.
    #[error("cannot find `{path}`, which is to be mounted", path = path.display())]
    Missing {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It would give the machine away.
    #[error("`{path}` is never mounted: {reason}", path = path.display())]
    Refused {
        /// What was named, with links resolved.
        path: PathBuf,
        /// What it would give away.
        reason: &'static str,
    },
    /// The operator has not listed it.
    #[error("`{path}` may not be mounted: it is not among the allowed directories", path = path.display())]
    NotAllowed {
        /// What was named, with links resolved.
        path: PathBuf,
    },
    /// There is no such place inside.
    #[error("`{target}` cannot be a place inside: {reason}", target = target.display())]
    Target {
        /// What was named.
        target: PathBuf,
        /// Why not.
        reason: &'static str,
    },
}

impl VolumeRequest {
    /// Reads a list as OpenHands' configuration has it: `host:container[:mode]`, with commas
    /// between. A host part that is no path names a volume, also with `volume:` before it. Without
    /// a mode it can be changed inside, as there.
    ///
    /// # Errors
    /// When it is not written like that.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, VolumeError> {
        let entries = text.split(',').map(str::trim);
        entries
            .filter(|entry| !entry.is_empty())
            .map(Self::parse)
            .collect()
    }

    fn parse(text: &str) -> Result<Self, VolumeError> {
        let wrong = || VolumeError::Syntax {
            text: text.to_owned(),
        };
        let (is_named, rest) = match text.strip_prefix("volume:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let (host, target, mode) = match parts.as_slice() {
            [host, target] => (*host, *target, "rw"),
            [host, target, mode] => (*host, *target, *mode),
            _ => return Err(wrong()),
        };
        // Docker's own words may stand beside ours, such as `rw,z`; a comma cannot, here.
        let mode = match mode {
            "ro" => VolumeMode::ReadOnly,
            "rw" | "" => VolumeMode::ReadWrite,
            mode if mode.contains("overlay") => VolumeMode::Overlay,
            _ => return Err(wrong()),
        };
        let source = if host.starts_with('/') && !is_named {
            VolumeSource::Host(PathBuf::from(host))
        } else if is_volume_name(host) {
            VolumeSource::Named(host.to_owned())
        } else {
            return Err(wrong());
        };
        let target = PathBuf::from(target);
        check_target(&target)?;
        Ok(Self {
            source,
            target,
            mode,
        })
    }
}

/// The characters that the Engine takes, so that a path is never taken for a name.
fn is_volume_name(name: &str) -> bool {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let rest = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    begins_well && name.len() <= 255 && name.chars().all(rest)
}

/// Directories of a system that no sandbox sees, and why not.
const NEVER: [(&str, &str); 9] = [
    (
        "/proc",
        "it shows and changes the processes of this machine",
    ),
    ("/sys", "it shows and changes the devices of this machine"),
    ("/dev", "it holds the devices of this machine"),
    (
        "/run",
        "it holds the sockets of this machine, the Engine's among them",
    ),
    (
        "/var/run",
        "it holds the sockets of this machine, the Engine's among them",
    ),
    ("/boot", "it holds the kernel of this machine"),
    (
        "/etc",
        "it holds the configuration and secrets of this machine",
    ),
    ("/var/lib/docker", "it holds the data of the Engine"),
    ("/var/lib/containers", "it holds the data of the Engine"),
];

/// What may be mounted here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MountRules<'a> {
    /// Our own state, which holds keys.
    pub(crate) state_dir: &'a Path,
    /// The Engine's socket, when it is on this machine.
    pub(crate) socket: Option<&'a Path>,
    /// What the operator has listed.
    pub(crate) allowed: Option<&'a [PathBuf]>,
}

impl MountRules<'_> {
    /// The real path of what is to be mounted, when it may be.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf, VolumeError> {
        let real = fs::canonicalize(path).map_err(|source| VolumeError::Missing {
            path: path.to_owned(),
            source,
        })?;
        if let Some(reason) = self.why_never(&real) {
            return Err(VolumeError::Refused { path: real, reason });
        }
        let is_listed = |listed: &PathBuf| {
            let listed = fs::canonicalize(listed);
            listed.is_ok_and(|listed| real.starts_with(listed))
        };
        match self.allowed {
            Some(allowed) if !allowed.iter().any(is_listed) => {
                Err(VolumeError::NotAllowed { path: real })
            }
            _ => Ok(real),
        }
    }

    fn why_never(&self, real: &Path) -> Option<&'static str> {
        if real == Path::new("/") {
            return Some("it is the whole machine");
        }
        let meets = |other: &Path| real.starts_with(other) || other.starts_with(real);
        // Nothing above these either: a mount takes along what lies below it.
        let named = NEVER.iter().find(|(path, _)| {
            let path = Path::new(path);
            meets(path) || fs::canonicalize(path).is_ok_and(|path| meets(&path))
        });
        if let Some((_, reason)) = named {
            return Some(reason);
        }
        let state = fs::canonicalize(self.state_dir);
        if meets(self.state_dir) || state.is_ok_and(|state| meets(&state)) {
            return Some("it holds the state of sandboxes, with their keys");
        }
        let socket = self.socket.and_then(|socket| fs::canonicalize(socket).ok());
        if socket.is_some_and(|socket| socket.starts_with(real)) {
            return Some("the Engine's socket lies in it");
        }
        None
    }
}

/// A place inside that is ours, or that the Engine fills.
const OURS: &str = "/.zareba";

/// Whether something can be mounted there.
pub(crate) fn check_target(target: &Path) -> Result<(), VolumeError> {
    let wrong = |reason| VolumeError::Target {
        target: target.to_owned(),
        reason,
    };
    if !target.is_absolute() || target == Path::new("/") {
        return Err(wrong("name an absolute path below `/`"));
    }
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !target.components().all(is_plain) {
        return Err(wrong("leave out `.` and `..`"));
    }
    for taken in [OURS, "/proc", "/sys", "/dev"] {
        if target.starts_with(taken) {
            return Err(wrong("that place is taken"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
