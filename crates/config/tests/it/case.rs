//! One call of `Configuration::load` with sources of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zareba_config::{
    ConfigFile, Configuration, Environment, LoadError, LoadRequest, Override, ProjectFile,
    SearchPlaces, TrustedFiles, UntrustedSettings,
};

/// A directory, an environment and flags that exist for one test only.
pub(crate) struct Case {
    directory: TempDir,
    variables: Vec<(OsString, OsString)>,
    overrides: Vec<Override>,
    file: Option<PathBuf>,
    trust: ProjectTrust,
    untrusted: UntrustedSettings,
}

/// Whether the user has trusted the file of the project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProjectTrust {
    Given,
    Missing,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            variables: Vec::new(),
            overrides: Vec::new(),
            file: None,
            trust: ProjectTrust::Given,
            untrusted: UntrustedSettings::Refuse,
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

    /// The user has not trusted the project file.
    pub(crate) fn untrusted(mut self) -> Self {
        self.trust = ProjectTrust::Missing;
        self
    }

    /// Looks at what the file says without following it.
    pub(crate) fn leaving_out(mut self) -> Self {
        self.untrusted = UntrustedSettings::LeaveOut;
        self
    }

    /// The environment, with a home of its own unless the test has one.
    pub(crate) fn environment(&self) -> Environment {
        let mut variables = self.variables.clone();
        let has_home = variables
            .iter()
            .any(|(name, _)| name == "HOME" || name == "XDG_CONFIG_HOME");
        if !has_home {
            variables.push(("HOME".into(), self.path("case-home").into()));
        }
        Environment::from_pairs(variables)
    }

    pub(crate) fn try_load(&self) -> Result<Configuration, LoadError> {
        let environment = self.environment();
        let system = self.path("etc/zareba.toml");
        let search = ConfigFile::Search(SearchPlaces {
            project: self.directory.path(),
            system: &system,
        });
        if self.trust == ProjectTrust::Given
            && let Ok(Some(project)) = ProjectFile::find(self.directory.path())
        {
            // A test may have no place for the record.
            let _ = TrustedFiles::trust(&environment, &project);
        }
        let file = self.file.as_deref().map_or(search, ConfigFile::At);
        Configuration::load(&LoadRequest {
            file,
            environment: &environment,
            overrides: &self.overrides,
            untrusted: self.untrusted,
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
