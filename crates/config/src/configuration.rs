//! Reads all sources and puts the settings together.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::admission::{LeftOut, Trust, UntrustedSettings};
use crate::environment::{self, Environment};
use crate::file::{self, FilePlace, SourceFile};
use crate::flags::{self, Override};
use crate::layer::Assembly;
use crate::origin::Origin;
use crate::problem::{Problem, Problems};
use crate::settings::Settings;
use crate::trust::TrustError;

/// The settings of this run, and who set them.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The typed settings.
    pub settings: Settings,
    /// The files that were read, the strongest last.
    pub files: Vec<UsedFile>,
    /// Values that were left out without being a mistake: a variable with a common name, such as
    /// `RUNTIME`, whose value is none of ours. To be said once at start.
    pub warnings: Vec<Problem>,
    /// Settings that do not count, each with the reason. To be said once at start.
    pub left_out: Vec<LeftOut>,
    pub(crate) origins: BTreeMap<String, Origin>,
}

/// A configuration file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedFile {
    /// The file as it was found, relative if the search was.
    pub path: PathBuf,
    /// Why it was read.
    pub place: FilePlace,
    /// Whether it may set everything. Only the file of a project may not.
    pub is_trusted: bool,
}

/// Where to look for settings.
#[derive(Debug, Clone, Copy)]
pub struct LoadRequest<'a> {
    /// Which file to read.
    pub file: ConfigFile<'a>,
    /// The variables of the process.
    pub environment: &'a Environment,
    /// The flags of the command line, the strongest last.
    pub overrides: &'a [Override],
    /// What becomes of settings that the file of a project may not set.
    pub untrusted: UntrustedSettings,
}

/// Which files to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFile<'a> {
    /// The one that `ZAREBA_CONFIG` names, and no other; else those of the system, of the user and
    /// of the project, each stronger than the one before.
    Search(SearchPlaces<'a>),
    /// This one, which has to exist.
    At(&'a Path),
    /// None: for an executor inside a sandbox, where whatever lies around was put there by the
    /// workload.
    Nothing,
}

/// Where files are looked for, beside the user's configuration directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchPlaces<'a> {
    /// The directory of the project, `.` for the current one: its `zareba.toml`, else its
    /// `config.toml` if that is OpenHands'.
    pub project: &'a Path,
    /// The file of the system.
    pub system: &'a Path,
}

impl SearchPlaces<'_> {
    /// The current directory and the usual file of the system.
    pub fn usual() -> Self {
        Self {
            project: Path::new("."),
            system: Path::new("/etc/zareba/zareba.toml"),
        }
    }
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is too large to be a configuration.
    #[error("`{}` is larger than {bytes_max} bytes", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// How large a configuration may be.
        bytes_max: u64,
    },
    /// The file is not UTF-8.
    #[error("`{}` is not UTF-8 text", path.display())]
    FileNotText {
        /// The file.
        path: PathBuf,
    },
    /// The file counts as the user's or the operator's, and another user could have written it.
    #[error("cannot trust `{}`: {reason}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Why another user could have written it, and the remedy.
        reason: &'static str,
    },
    /// Which files of projects are trusted cannot be found out.
    #[error(transparent)]
    TrustRecord(#[from] TrustError),
    /// A source has mistakes; all of them are listed, one to a line.
    #[error("{0}")]
    Invalid(Problems),
}

impl Configuration {
    /// Reads defaults, files, environment and flags, each over the one before.
    ///
    /// # Errors
    ///
    /// A file that was named cannot be read, or any source has a mistake. Mistakes are collected
    /// from all sources before any is reported, so that one run shows everything there is to fix.
    pub fn load(request: &LoadRequest<'_>) -> Result<Self, LoadError> {
        let sources = file::locate(request.file, request.environment)?;
        let mut assembly = Assembly::new(request.untrusted);
        assembly.is_for_executor = request.file == ConfigFile::Nothing;
        for source in &sources {
            file::apply(source, &mut assembly);
        }
        environment::apply(request.environment, &mut assembly);
        flags::apply(request.overrides, &mut assembly);
        assembly.finish();
        if !assembly.problems.is_empty() {
            return Err(LoadError::Invalid(Problems(assembly.problems)));
        }
        Ok(Self {
            settings: assembly.settings,
            files: sources.into_iter().map(UsedFile::from).collect(),
            warnings: assembly.warnings,
            left_out: assembly.left_out,
            origins: assembly.origins,
        })
    }

    /// Whether any setting is the one of this file.
    pub fn takes_from(&self, file: &UsedFile) -> bool {
        let is_of_file =
            |origin: &Origin| matches!(origin, Origin::File { path, .. } if *path == file.path);
        self.origins.values().any(is_of_file)
    }

    /// Who set the value at a path of [`Configuration::table`].
    pub fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }
}

impl From<SourceFile> for UsedFile {
    fn from(source: SourceFile) -> Self {
        Self {
            path: source.path,
            place: source.place,
            is_trusted: source.speaker.trust == Trust::Trusted,
        }
    }
}
