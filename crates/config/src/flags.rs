//! Flags of the command line: the strongest source.

use crate::admission::Speaker;
use crate::hint;
use crate::layer::{Assembly, Assignment, IfWrong, Input, Target};
use crate::origin::Origin;
use crate::problem::{Problem, ProblemKind};
use crate::setting::Dialect;

/// One setting given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The path of the setting, for instance `shell.timeout`.
    pub key: String,
    /// Its value as text; lists and tables are in JSON or Python syntax.
    pub value: String,
    /// The flag as the user typed it, for messages and for `config show`.
    pub flag: String,
}

/// Why the argument of `--set` is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseOverride {
    /// There is no `=`.
    #[error("`{0}` is not of the form `section.key=value`")]
    NoValue(String),
}

impl Override {
    /// A setting that has a flag of its own, for instance `--runtime`.
    pub fn new(flag: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            flag: flag.into(),
        }
    }

    /// The argument of `--set`: `shell.timeout=30`. The value begins after the first `=`.
    ///
    /// # Errors
    ///
    /// The argument has no `=`. Whether the key exists and the value fits is found out by
    /// [`Configuration::load`](crate::Configuration::load), together with everything else.
    pub fn parse(argument: &str) -> Result<Self, ParseOverride> {
        let (key, value) = argument
            .split_once('=')
            .ok_or_else(|| ParseOverride::NoValue(argument.to_owned()))?;
        Ok(Self::new(
            format!("--set {}", key.trim()),
            key.trim(),
            value,
        ))
    }
}

/// Adds the flags, later ones over earlier ones. A flag that stands for settings of several runtimes is
/// wrong once, not once for each of them.
pub(crate) fn apply(overrides: &[Override], assembly: &mut Assembly) {
    let mut refused: Vec<(&str, &str)> = Vec::new();
    for Override { key, value, flag } in overrides {
        if refused.contains(&(flag, value)) {
            continue;
        }
        let problems = assembly.problems.len();
        let origin = Origin::Flag { name: flag.clone() };
        match Target::find(key) {
            Some(target) => assembly.assign(Assignment {
                target,
                written_as: key.clone(),
                input: Input::Text(value.clone(), Dialect::Strict),
                origin,
                if_wrong: IfWrong::Refuse,
                speaker: Speaker::USER,
            }),
            None => {
                let kind = ProblemKind::UnknownKey(key.clone());
                let hint = hint::for_key(key);
                assembly.problems.push(Problem { origin, kind, hint });
            }
        }
        if assembly.problems.len() > problems {
            refused.push((flag, value));
        }
    }
}
