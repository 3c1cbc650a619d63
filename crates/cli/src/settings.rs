//! Loads the configuration for a command, and passes on what it has to say.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use zareba_config::{
    ConfigFile, Configuration, Environment, FilePlace, LeftOut, LeftOutReason, LoadError,
    LoadRequest, Origin, Override, SearchPlaces, UntrustedSettings,
};

use crate::{arguments::GlobalArguments, exit::Exit, failure::Failure, say};

/// As good as no limit, and still a number that everybody can count with.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How many settings that do not count are named in one warning.
const NAMED_MAX: usize = 12;

/// Which file counts when `--config` names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutConfig {
    /// Those that are found in the usual places.
    Search,
    /// None: where the command runs, files are the workload's.
    Nothing,
}

/// What was said of the configuration. A command that loads it twice says it once.
#[derive(Debug, Default)]
pub(crate) struct Notices(AtomicBool);

/// Where a command gets its settings from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) globals: &'a GlobalArguments,
    pub(crate) environment: &'a Environment,
    pub(crate) without_config: WithoutConfig,
    pub(crate) untrusted: UntrustedSettings,
}

impl Sources<'_> {
    /// The settings, with flags over all of them; what there is to say of them is said.
    pub(crate) fn load(
        self,
        flags: Vec<Override>,
        notices: &Notices,
    ) -> Result<Configuration, Failure> {
        let mut overrides = flags;
        for argument in &self.globals.set {
            let setting =
                Override::parse(argument).map_err(|error| Failure::of(Exit::Usage, &error))?;
            overrides.push(setting);
        }
        let file = match (&self.globals.config, self.without_config) {
            (Some(path), _) => ConfigFile::At(path),
            (None, WithoutConfig::Search) => ConfigFile::Search(SearchPlaces::usual()),
            (None, WithoutConfig::Nothing) => ConfigFile::Nothing,
        };
        let request = LoadRequest {
            file,
            environment: self.environment,
            overrides: &overrides,
            untrusted: self.untrusted,
        };
        let configuration = Configuration::load(&request).map_err(|error| invalid(&error))?;
        notices.say(&configuration);
        Ok(configuration)
    }
}

impl Notices {
    fn say(&self, configuration: &Configuration) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        for problem in &configuration.warnings {
            say::warning(problem);
        }
        let projects = configuration.files.iter();
        for project in projects.filter(|file| file.place == FilePlace::Project) {
            if configuration.takes_from(project) {
                let trust = match project.is_trusted {
                    true => ", which you have trusted",
                    false => "",
                };
                let path = project.path.display();
                say::note(format_args!("using settings of `{path}`{trust}"));
            }
        }
        say_left_out(&configuration.left_out);
    }
}

/// Says what sources say in vain, and how it would count.
fn say_left_out(left_out: &[LeftOut]) {
    let because = |reason: LeftOutReason| left_out.iter().filter(move |it| it.reason == reason);
    let untrusted: Vec<&LeftOut> = because(LeftOutReason::Untrusted).collect();
    if let Some(file) = untrusted.first().and_then(|it| it.origin.file()) {
        let file = file.display();
        say::warning(format_args!(
            "`{file}` is not trusted, so these settings of it do not count: {}\n  \
             hint: `zareba trust {file}` shows what they say and asks you",
            named(&untrusted)
        ));
    }
    let absent: Vec<&LeftOut> = because(LeftOutReason::NotInThisVersion).collect();
    if !absent.is_empty() {
        say::warning(format_args!(
            "these settings of OpenHands are not in this version and do not count: {}",
            named(&absent)
        ));
    }
}

fn named(left_out: &[&LeftOut]) -> String {
    let mut names = String::new();
    for (index, setting) in left_out.iter().take(NAMED_MAX).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let LeftOut {
            written_as, origin, ..
        } = setting;
        // Writing to a string cannot fail.
        let _ = write!(names, "{separator}`{written_as}` ({origin})");
    }
    match left_out.len().saturating_sub(NAMED_MAX) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
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
