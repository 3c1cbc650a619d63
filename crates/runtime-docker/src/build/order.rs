//! What is asked of the builder, and what it answers.

use std::{fs::File, path::PathBuf, time::Duration};

use super::{BuiltFrom, ContextLimits};

/// How long a build may take, as with OpenHands' client.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// What is built.
#[derive(Debug)]
pub enum BuildSource {
    /// A directory of this machine. Its `.dockerignore` is honoured.
    Directory {
        /// Which.
        directory: PathBuf,
        /// The Dockerfile: below the directory, or anywhere with an absolute path; `None` is the
        /// one that is called so.
        dockerfile: Option<PathBuf>,
    },
    /// An archive from somebody else, which is believed nothing. It may be compressed with gzip.
    Archive(File),
}

/// An image to be built.
#[derive(Debug)]
pub struct BuildOrder {
    /// From what.
    pub source: BuildSource,
    /// What it is called; the first name is the one that is told.
    pub names: Vec<String>,
    /// For which kind of machine, such as `linux/arm64`; `None` is the Engine's own.
    pub platform: Option<String>,
    /// Values of the Dockerfile's arguments.
    pub arguments: Vec<(String, String)>,
    /// How it is built.
    pub manner: BuildManner,
}

/// How images are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildManner {
    /// By whom.
    pub builder: BuilderChoice,
    /// What becomes of earlier results.
    pub reuse: Reuse,
    /// How long it may take.
    pub patience: Duration,
    /// What the context may hold.
    pub limits: ContextLimits,
}

impl Default for BuildManner {
    fn default() -> Self {
        Self {
            builder: BuilderChoice::Best,
            reuse: Reuse::Everything,
            patience: PATIENCE,
            limits: ContextLimits::usual(),
        }
    }
}

/// Which builder of the Engine is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuilderChoice {
    /// BuildKit where the Engine has it and can use it with the network that is asked for.
    Best,
    /// The classic one.
    Classic,
    /// BuildKit or none. Images that it builds on are fetched before, so that no credentials are
    /// needed in the middle; secrets and ssh keys of a build are not supported.
    BuildKit,
}

/// What becomes of earlier results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// They are used.
    Everything,
    /// All is built again.
    Nothing,
}

/// An image that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltImage {
    /// Its id.
    pub id: String,
    /// Its names.
    pub names: Vec<String>,
    /// What a recipe began with.
    pub from: BuiltFrom,
    /// Devices, pipes and sockets that were left out of the context.
    pub left_out: usize,
}

/// What is known of an image that the Engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSummary {
    /// Its id.
    pub id: String,
    /// When it was made, as RFC 3339 has it.
    pub created: String,
    /// What it takes.
    pub bytes: u64,
}

/// What is removed from the cache of builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneOrder {
    /// Also what images still need; otherwise only what nothing needs any more.
    pub all: bool,
    /// How much may stay.
    pub keep_bytes: Option<u64>,
}

/// What was removed from the cache of builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many results.
    pub results: usize,
    /// What they took.
    pub bytes: u64,
}
