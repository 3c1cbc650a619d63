//! The file of a project, for a user who decides whether to trust it.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::locate::{FilePlace, SourceFile, find_project, read};
use super::read::apply;
use crate::admission::{LeftOut, LeftOutReason, UntrustedSettings};
use crate::configuration::LoadError;
use crate::layer::{Assembly, Target};
use crate::problem::Problems;
use crate::show;
use crate::value::Value;

/// The file of a project: `zareba.toml` or OpenHands' `config.toml` in its directory.
#[derive(Debug)]
pub struct ProjectFile {
    source: SourceFile,
    canonical: Option<PathBuf>,
    sha256: String,
}

impl ProjectFile {
    /// The file that a command in this directory would read, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(directory: &Path) -> Result<Option<Self>, LoadError> {
        Ok(find_project(directory)?.map(Self::of))
    }

    /// Reads this file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        read(path.to_path_buf(), FilePlace::Project).map(Self::of)
    }

    pub(super) fn of(source: SourceFile) -> Self {
        let hash = Sha256::digest(source.text.as_bytes());
        Self {
            canonical: source.path.canonicalize().ok(),
            sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            source,
        }
    }

    pub(super) fn into_source(self) -> SourceFile {
        self.source
    }

    /// The file as it was named or found.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// The file by its full path without links, if it has one.
    pub fn canonical_path(&self) -> Option<&Path> {
        self.canonical.as_deref()
    }

    /// The SHA-256 of the content that was read, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// What it says and may only say when it is trusted, in the order of its lines: settings, and
    /// variables of the sandbox, which runtimes without walls get only then.
    ///
    /// # Errors
    /// The file has mistakes, all of which are listed.
    pub fn settings_that_need_trust(&self) -> Result<Vec<LeftOut>, LoadError> {
        let mut assembly = Assembly::new(UntrustedSettings::LeaveOut);
        apply(&self.source, &mut assembly);
        if !assembly.problems.is_empty() {
            return Err(LoadError::Invalid(Problems(assembly.problems)));
        }
        let is_untrusted = |it: &LeftOut| it.reason == LeftOutReason::Untrusted;
        let mut all: Vec<LeftOut> = Vec::new();
        all.extend(assembly.left_out.drain(..).filter(is_untrusted));
        all.extend(assembly.settings.env.iter().map(|(name, value)| {
            let target = Target::Variable(name.to_owned());
            let key = target.path();
            LeftOut {
                origin: assembly.origin(&key),
                written_as: key.clone(),
                value: Some(show::masked(&target, Value::Text(value.to_owned()))),
                reason: LeftOutReason::Untrusted,
                key,
            }
        }));
        all.sort_by_key(|it| it.origin.line());
        Ok(all)
    }
}
