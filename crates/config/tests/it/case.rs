//! One call of `Configuration::load` with sources of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zareba_config::{ConfigFile, Configuration, Environment, LoadError, LoadRequest, Override};

/// A directory, an environment and flags that exist for one test only.
pub(crate) struct Case {
    directory: TempDir,
    variables: Vec<(OsString, OsString)>,
    overrides: Vec<Override>,
    file: Option<PathBuf>,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            variables: Vec::new(),
            overrides: Vec::new(),
            file: None,
        }
    }

    /// Writes a file below the directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub(crate) fn set(mut self, argument: &str) -> Self {
        self.overrides.push(Override::parse(argument).unwrap());
        self
    }

    pub(crate) fn flag(mut self, flag: &str, key: &str, value: &str) -> Self {
        self.overrides.push(Override::new(flag, key, value));
        self
    }

    /// Names the file on the command line.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.file = Some(self.path(name));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn try_load(&self) -> Result<Configuration, LoadError> {
        let search = ConfigFile::Search(self.directory.path());
        let file = self.file.as_deref().map_or(search, ConfigFile::At);
        Configuration::load(&LoadRequest {
            file,
            environment: &Environment::from_pairs(self.variables.iter().cloned()),
            overrides: &self.overrides,
        })
    }

    /// Loads what has to be right.
    pub(crate) fn load(&self) -> Configuration {
        self.try_load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Loads what has to be wrong; paths in the complaints are relative to the directory.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let error = self
            .try_load()
            .expect_err("the configuration has a mistake");
        self.relative(&error.to_string())
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Who set a value, with the path relative to the directory.
    pub(crate) fn origin(&self, key: &str) -> String {
        self.relative(&self.load().origin(key).to_string())
    }

    pub(crate) fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", directory_text(self.directory.path())), "")
    }
}

fn directory_text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
