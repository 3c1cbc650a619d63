//! The process environment, and the settings that stand in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::admission::{Speaker, Trust, Vocabulary};
use crate::hint;
use crate::key::{self, VARIABLE_PREFIX, VariableName};
use crate::kubernetes;
use crate::layer::{Assembly, Assignment, ENV_SECTION, IfWrong, Input, Target};
use crate::origin::Origin;
use crate::problem::{Problem, ProblemKind};
use crate::setting::Dialect;

/// Variables with our prefix that are no settings, and so are left alone here. A name that ends
/// in `*` stands for all names that begin like it.
pub const RESERVED_VARIABLES: [&str; 8] = [
    "ZAREBA_BIN",
    "ZAREBA_CONFIG",
    "ZAREBA_LOG",
    "ZAREBA_URL",
    "ZAREBA_API_KEY",
    "ZAREBA_MCP_TOKEN",
    "ZAREBA_EXECUTOR_*",
    "ZAREBA_TEST_*",
];

/// The prefixes of variables that are passed on to the sandbox without the prefix, the weaker one
/// first.
const PASSED_ON: [&str; 2] = ["SANDBOX_ENV_", "ZAREBA_ENV_"];

/// OpenHands' variable with a table of variables for the sandbox.
const STARTUP_VARIABLES: &str = "SANDBOX_RUNTIME_STARTUP_ENV_VARS";

/// The variables that the program was started with.
///
/// It is read once, in `main`, and handed down, so that tests need no global state and no other
/// crate depends on what happens to be set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Reads the environment of this process: the only call of its kind in the workspace.
    pub fn from_process() -> Self {
        Self::from_pairs(std::env::vars_os())
    }

    /// An environment with just these variables; of equal names the last counts.
    pub fn from_pairs<N: Into<OsString>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self { variables }
    }

    /// The value of a variable, if it is set and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name).and_then(OsStr::to_str)
    }

    /// The value of a variable as the system has it.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Names only: values are where people keep their secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Adds every setting that the environment holds, and complains about those of our variables that
/// are none.
pub(crate) fn apply(environment: &Environment, assembly: &mut Assembly) {
    for (variable, key) in key::all_variables() {
        assign(environment, variable, Target::Key(key), assembly);
    }
    let startup = VariableName {
        name: STARTUP_VARIABLES.to_owned(),
        dialect: Dialect::OpenHands,
        is_bare: false,
        vocabulary: Vocabulary::OpenHands,
    };
    assign(environment, &startup, Target::Variables, assembly);
    for prefix in PASSED_ON {
        pass_on(environment, prefix, assembly);
    }
    refuse_unknown(environment, assembly);
}

/// Reads one variable; an empty one counts as not set, as it does for OpenHands.
fn assign(
    environment: &Environment,
    variable: &VariableName,
    target: Target,
    assembly: &mut Assembly,
) {
    if let Some(value) = environment
        .get_os(&variable.name)
        .filter(|value| !value.is_empty())
    {
        put(variable.clone(), value, target, assembly);
    }
}

/// Hands every variable with the prefix to the sandbox, empty ones too.
fn pass_on(environment: &Environment, prefix: &str, assembly: &mut Assembly) {
    for (name, value) in environment.iter() {
        let Some(name) = name.to_str() else { continue };
        if let Some(inner) = name.strip_prefix(prefix).filter(|inner| !inner.is_empty()) {
            let target = Target::Variable(inner.to_owned());
            let variable = VariableName {
                name: name.to_owned(),
                dialect: Dialect::Strict,
                is_bare: false,
                vocabulary: Vocabulary::Zareba,
            };
            put(variable, value, target, assembly);
        }
    }
}

fn put(variable: VariableName, value: &OsStr, target: Target, assembly: &mut Assembly) {
    let input = match value.to_str() {
        Some(text) => Input::Text(text.to_owned(), variable.dialect),
        None => Input::NotText,
    };
    assembly.assign(Assignment {
        written_as: target.path(),
        target,
        input,
        origin: Origin::Variable {
            name: variable.name,
        },
        if_wrong: if variable.is_bare {
            IfWrong::Skip
        } else {
            IfWrong::Refuse
        },
        speaker: Speaker {
            vocabulary: variable.vocabulary,
            trust: Trust::Trusted,
        },
    });
}

/// A misspelt variable would otherwise be a setting that silently does not hold.
fn refuse_unknown(environment: &Environment, assembly: &mut Assembly) {
    let own = key::own_variables();
    let free = format!("{VARIABLE_PREFIX}{}_", ENV_SECTION.to_ascii_uppercase());
    for (name, value) in environment.iter() {
        let name = name.to_string_lossy();
        let is_known = !name.starts_with(VARIABLE_PREFIX)
            || own.contains(name.as_ref())
            || (name.starts_with(&free) && name.len() > free.len())
            || is_reserved(&name)
            || kubernetes::is_of_service(&name, value);
        if !is_known {
            assembly.problems.push(Problem {
                kind: ProblemKind::UnknownVariable,
                hint: hint::for_variable(&name),
                origin: Origin::Variable {
                    name: name.into_owned(),
                },
            });
        }
    }
}

fn is_reserved(name: &str) -> bool {
    RESERVED_VARIABLES
        .iter()
        .any(|reserved| match reserved.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *reserved,
        })
}
