//! Reads all sources and puts the settings together.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::environment::{self, Environment};
use crate::file;
use crate::flags::{self, Override};
use crate::layer::Assembly;
use crate::origin::Origin;
use crate::problem::{Problem, Problems};
use crate::settings::Settings;

/// The settings of this run, and who set them.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The typed settings.
    pub settings: Settings,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// Values that were left out without being a mistake: a variable with a common name, such as
    /// `RUNTIME`, whose value is none of ours. To be said once at start.
    pub warnings: Vec<Problem>,
    pub(crate) origins: BTreeMap<String, Origin>,
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
}

/// Which file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFile<'a> {
    /// The one that `ZAREBA_CONFIG` names, else the first that is found: `zareba.toml` in this
    /// directory (`.` for the current one), `zareba.toml` of the user, `config.toml` of OpenHands
    /// in this directory.
    Search(&'a Path),
    /// This one, which has to exist.
    At(&'a Path),
    /// None: for an executor inside a sandbox, where whatever lies around was put there by the
    /// workload.
    Nothing,
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
    /// A source has mistakes; all of them are listed, one to a line.
    #[error("{0}")]
    Invalid(Problems),
}

impl Configuration {
    /// Reads defaults, file, environment and flags, each over the one before.
    ///
    /// # Errors
    ///
    /// A file that was named cannot be read, or any source has a mistake. Mistakes are collected
    /// from all sources before any is reported, so that one run shows everything there is to fix.
    pub fn load(request: &LoadRequest<'_>) -> Result<Self, LoadError> {
        let source = file::locate(request.file, request.environment)?;
        let mut assembly = Assembly::default();
        if let Some(source) = &source {
            file::apply(source, &mut assembly);
        }
        environment::apply(request.environment, &mut assembly);
        flags::apply(request.overrides, &mut assembly);
        if !assembly.problems.is_empty() {
            return Err(LoadError::Invalid(Problems(assembly.problems)));
        }
        assembly.finish();
        Ok(Self {
            settings: assembly.settings,
            file: source.map(|source| source.path),
            warnings: assembly.warnings,
            origins: assembly.origins,
        })
    }

    /// Who set the value at a path of [`Configuration::table`].
    pub fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }
}
