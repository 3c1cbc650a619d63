//! Why a document is not an event, in the texts that clients of the original know.

use serde_json::Value;

use super::FieldError;
use crate::{ErrorClass, action::contract, python_repr};

/// Why a JSON document is no action or no observation.
///
/// Where the original has a text for the mistake, `Display` gives it to the letter: the HTTP API
/// answers with it behind `Internal server error: `. Other surfaces use
/// [`in_words`](Self::in_words).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not JSON, or nested too deeply.
    #[error("invalid JSON: {message}")]
    Syntax {
        /// What the parser said.
        message: String,
    },
    /// JSON, but no object.
    #[error("an event must be an object, not {found}")]
    NotAnObject {
        /// What it is instead.
        found: &'static str,
    },
    /// Neither an `action` nor an `observation`.
    #[error("Unknown event type: {event}")]
    NoType {
        /// The document as Python shows it.
        event: String,
    },
    /// An observation where an action was expected.
    #[error("400: Invalid action type")]
    NotAnAction,
    /// An action type that nobody knows.
    #[error(
        "'action['action']={kind}' is not defined. Available actions: {}",
        available_actions()
    )]
    UnknownAction {
        /// The type as Python shows it.
        kind: String,
    },
    /// An argument that the type does not take.
    #[error(
        "action={action} has the wrong arguments: {class}.__init__() got an unexpected keyword argument '{argument}'"
    )]
    UnexpectedArgument {
        /// The document as Python shows it.
        action: String,
        /// The original's name of the type.
        class: &'static str,
        /// The argument.
        argument: String,
    },
    /// Arguments that the type needs and did not get.
    #[error(
        "action={action} has the wrong arguments: {class}.__init__() missing {} required positional {}: {}",
        arguments.len(),
        if arguments.len() == 1 { "argument" } else { "arguments" },
        python_enumeration(arguments)
    )]
    MissingArguments {
        /// The document as Python shows it.
        action: String,
        /// The original's name of the type.
        class: &'static str,
        /// The arguments.
        arguments: Vec<&'static str>,
    },
    /// A `source` that is none of the three.
    #[error("{value} is not a valid EventSource")]
    UnknownSource {
        /// The value as Python shows it.
        value: String,
    },
    /// An observation type that nobody knows.
    #[error("unknown observation type {kind}")]
    UnknownObservation {
        /// The type as Python shows it.
        kind: String,
    },
    /// A known field with a value that it cannot have.
    #[error("field `{field}` of `{kind}`: {problem}")]
    InvalidField {
        /// The type of the event.
        kind: &'static str,
        /// The field.
        field: String,
        /// What is wrong with its value.
        problem: String,
    },
}

impl DecodeError {
    /// The class that callers decide by.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::UnknownAction { .. } | Self::UnknownObservation { .. } => ErrorClass::Unsupported,
            Self::Syntax { .. }
            | Self::NotAnObject { .. }
            | Self::NoType { .. }
            | Self::NotAnAction
            | Self::UnexpectedArgument { .. }
            | Self::MissingArguments { .. }
            | Self::UnknownSource { .. }
            | Self::InvalidField { .. } => ErrorClass::Invalid,
        }
    }

    /// The same for those who do not speak Python: what is wrong, and what would be right.
    pub fn in_words(&self) -> String {
        let name = |class: &str| {
            let contract = contract::ALL.iter().find(|known| known.class == class);
            contract.map_or("the action", |contract| contract.kind)
        };
        match self {
            Self::NoType { .. } => "the field `action` is missing".to_owned(),
            Self::NotAnAction => "it is an observation, and an action is wanted".to_owned(),
            Self::UnknownAction { kind } => {
                let kinds = contract::ALL.iter().map(|contract| contract.kind);
                let kinds: Vec<&str> = kinds.filter(|kind| *kind != "null").collect();
                let kind = unquoted(kind);
                format!(
                    "there is no action `{kind}`; there are `{}`",
                    kinds.join("`, `")
                )
            }
            Self::UnexpectedArgument {
                class, argument, ..
            } => {
                format!("the action `{}` has no argument `{argument}`", name(class))
            }
            Self::MissingArguments {
                class, arguments, ..
            } => {
                let arguments = arguments.join("` and `");
                format!("the action `{}` needs `{arguments}` in `args`", name(class))
            }
            Self::UnknownSource { value } => format!(
                "`source` is `agent`, `user` or `environment`, not `{}`",
                unquoted(value)
            ),
            Self::Syntax { .. }
            | Self::NotAnObject { .. }
            | Self::UnknownObservation { .. }
            | Self::InvalidField { .. } => self.to_string(),
        }
    }

    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        Self::Syntax {
            message: error.to_string(),
        }
    }

    pub(super) fn not_an_object(value: &Value) -> Self {
        Self::NotAnObject {
            found: type_name(value),
        }
    }

    /// `whole` names the object that lacks something when the error names no field of it.
    pub(super) fn invalid_field(kind: &'static str, whole: &str, error: FieldError) -> Self {
        let field = if error.field.is_empty() {
            whole.to_owned()
        } else {
            error.field
        };
        Self::InvalidField {
            kind,
            field,
            problem: error.problem,
        }
    }
}

/// A text without the quotes that Python puts around it.
fn unquoted(shown: &str) -> &str {
    shown.trim_matches(['\'', '"'])
}

/// What JSON calls the type of the value.
pub(super) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn available_actions() -> String {
    let kinds: Vec<_> = contract::ALL
        .iter()
        .map(|contract| python_repr::of_str(contract.kind))
        .collect();
    format!("dict_keys([{}])", kinds.join(", "))
}

/// `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`.
fn python_enumeration(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| python_repr::of_str(name)).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [head @ .., last] => format!("{}, and {last}", head.join(", ")),
    }
}
