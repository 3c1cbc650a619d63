//! Assignments from the sources, and the settings that they add up to.

use std::collections::BTreeMap;

use crate::key::{self, Key};
use crate::origin::Origin;
use crate::problem::{Problem, ProblemKind};
use crate::setting::{Dialect, Mismatch, Setting, Shape};
use crate::settings::Settings;
use crate::settings::openhands::STARTUP_VARIABLES;
use crate::value::Value;
use crate::volumes;

/// The section whose keys are free: each is a variable of the sandbox.
pub(crate) const ENV_SECTION: &str = "env";

/// One value that a source gives.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) target: Target,
    /// The name that the source used for the target, for messages about it.
    pub(crate) written_as: String,
    pub(crate) input: Input,
    pub(crate) origin: Origin,
    pub(crate) if_wrong: IfWrong,
}

/// What an assignment is for.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Key(&'static Key),
    /// One variable of the sandbox.
    Variable(String),
    /// A table of them.
    Variables,
}

/// A value, or the text that still has to become one.
#[derive(Debug)]
pub(crate) enum Input {
    Value(Value),
    Text(String, Dialect),
    /// Bytes that are no text at all.
    NotText,
}

/// What a value that does not fit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfWrong {
    /// A mistake: nothing starts.
    Refuse,
    /// Probably meant for another program: said, and left out.
    Skip,
}

/// The settings while they are put together.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) settings: Settings,
    /// Who set what, by path; what is missing has its default.
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Target {
    /// What a path in a file or a flag stands for.
    pub(crate) fn find(path: &str) -> Option<Self> {
        if path == STARTUP_VARIABLES {
            return Some(Self::Variables);
        }
        let variable = path
            .strip_prefix(ENV_SECTION)
            .and_then(|rest| rest.strip_prefix('.'));
        match variable {
            Some(name) => Some(Self::Variable(name.to_owned())),
            None => key::find(path).map(Self::Key),
        }
    }

    /// The path under which the value is stored and shown.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Key(key) => key.path.to_owned(),
            Self::Variable(name) => format!("{ENV_SECTION}.{name}"),
            Self::Variables => ENV_SECTION.to_owned(),
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Key(key) => key.shape,
            Self::Variable(_) => Shape::Text,
            Self::Variables => Shape::Table,
        }
    }
}

impl Assembly {
    /// Puts one value in place, over whatever a weaker source had put there.
    pub(crate) fn assign(&mut self, assignment: Assignment) {
        let Assignment {
            target,
            written_as,
            input,
            origin,
            if_wrong,
        } = assignment;
        let value = match input {
            Input::Value(value) => Ok(value),
            Input::Text(text, dialect) => dialect.read(&text, target.shape()),
            Input::NotText => Err(Mismatch::rule("is not UTF-8 text")),
        };
        let stored = value.and_then(|value| self.store(&target, &value, &origin));
        let Err(mismatch) = stored else { return };
        let problem = complaint(written_as, mismatch, origin);
        match if_wrong {
            IfWrong::Refuse => self.problems.push(problem),
            IfWrong::Skip => self.warnings.push(problem),
        }
    }

    /// Applies the rules between settings, once all sources have been read.
    pub(crate) fn finish(&mut self) {
        let Some(volumes) = &self.settings.openhands.sandbox.volumes else {
            return;
        };
        let origin = self.origin("sandbox.volumes");
        // A flag that names the workspace is not undone by a variable that lists mounts.
        if origin.rank() >= self.origin("runtime.workspace").rank() {
            self.settings.runtime.workspace = volumes::workspace(volumes);
            self.origins.insert("runtime.workspace".to_owned(), origin);
        }
    }

    /// Who set the value at this path.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }

    fn store(&mut self, target: &Target, value: &Value, origin: &Origin) -> Result<(), Mismatch> {
        match target {
            Target::Key(key) => {
                (key.set)(&mut self.settings, value)?;
                self.origins.insert(target.path(), origin.clone());
            }
            Target::Variable(name) => self.store_variable(name, value, origin)?,
            Target::Variables => {
                for (name, value) in &BTreeMap::read(value)? {
                    self.store_variable(name, value, origin)?;
                }
            }
        }
        Ok(())
    }

    fn store_variable(
        &mut self,
        name: &str,
        value: &Value,
        origin: &Origin,
    ) -> Result<(), Mismatch> {
        if !is_variable_name(name) {
            return Err(Mismatch::rule(format!(
                "has {name:?}, which is no name for a variable"
            )));
        }
        let value = String::read(value)?;
        if value.contains('\0') {
            return Err(Mismatch::rule(format!("has a NUL character in `{name}`")));
        }
        self.settings.env.insert(name.to_owned(), value);
        self.origins
            .insert(format!("{ENV_SECTION}.{name}"), origin.clone());
        Ok(())
    }
}

/// A name that a shell can export.
fn is_variable_name(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.chars().all(is_word)
        && name.starts_with(|first: char| is_word(first) && !first.is_ascii_digit())
}

fn complaint(key: String, mismatch: Mismatch, origin: Origin) -> Problem {
    let (kind, hint) = match mismatch {
        Mismatch::Type { expected, found } => {
            let expected = expected.to_string();
            (
                ProblemKind::WrongType {
                    key,
                    expected,
                    found,
                },
                None,
            )
        }
        Mismatch::Value { reason, hint } => (ProblemKind::BadValue { key, reason }, hint),
    };
    Problem { origin, kind, hint }
}
