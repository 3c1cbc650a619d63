//! Loads the configuration for a command, and passes on what it has to say.

use std::{path::Path, time::Duration};

use zareba_config::{
    ConfigFile, Configuration, Environment, LoadError, LoadRequest, Origin, Override,
};

use crate::{arguments::GlobalArguments, exit::Exit, failure::Failure, say};

/// As good as no limit, and still a number that everybody can count with.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Which file counts when `--config` names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutConfig {
    /// The one that is found in the usual places.
    Search,
    /// None: where the command runs, files are the workload's.
    Nothing,
}

/// The settings for a command; warnings are said here, once.
pub(crate) fn load(
    globals: &GlobalArguments,
    environment: &Environment,
    without_config: WithoutConfig,
    flags: Vec<Override>,
) -> Result<Configuration, Failure> {
    let mut overrides = flags;
    for argument in &globals.set {
        let setting =
            Override::parse(argument).map_err(|error| Failure::of(Exit::Usage, &error))?;
        overrides.push(setting);
    }
    let file = match (&globals.config, without_config) {
        (Some(path), _) => ConfigFile::At(path),
        (None, WithoutConfig::Search) => ConfigFile::Search(Path::new(".")),
        (None, WithoutConfig::Nothing) => ConfigFile::Nothing,
    };
    let request = LoadRequest {
        file,
        environment,
        overrides: &overrides,
    };
    let configuration = Configuration::load(&request).map_err(|error| invalid(&error))?;
    for problem in &configuration.warnings {
        say::warning(problem);
    }
    Ok(configuration)
}

/// How long a command of a person may take: as long as it likes, unless somebody said how long
/// that is.
pub(crate) fn command_limit(asked: Option<Duration>, configuration: &Configuration) -> Duration {
    let is_set = configuration.origin("shell.timeout") != Origin::Default;
    let configured = is_set.then_some(configuration.settings.shell.timeout);
    asked.or(configured).unwrap_or(NO_LIMIT)
}

fn invalid(error: &LoadError) -> Failure {
    Failure::of(Exit::Configuration, error)
        .while_doing("cannot use the configuration")
        .hint("`zareba config show` lists every setting; docs/configuration.md explains them")
}
