//! Reads an action as the original's server does, with its error texts.

use serde_json::{Map, Value};

use super::{
    DecodeError, FieldError,
    envelope::{Document, text},
    legacy,
};
use crate::{
    Action, ActionEvent, ShellName,
    action::contract::{self, ActionContract},
    python_repr,
};

impl ActionEvent {
    /// Reads an action from JSON text.
    ///
    /// # Errors
    /// When the text is no JSON, nests deeper than 128 levels, or is no valid action.
    pub fn from_json(json: &[u8]) -> Result<Self, DecodeError> {
        Self::from_value(Document::parse(json)?)
    }

    /// Reads an action from a JSON value.
    ///
    /// Keys that the envelope does not know are ignored, arguments that the type does not know
    /// are refused, and old spellings are understood.
    ///
    /// # Errors
    /// When it is no valid action.
    pub fn from_value(value: Value) -> Result<Self, DecodeError> {
        let mut document = Document::new(value)?;
        let contract = find_contract(&document.keys)?;
        let invalid = |error| DecodeError::invalid_field(contract.kind, "args", error);

        let mut args = document.take_object("args").map_err(invalid)?;
        let old_timestamp = legacy::modernise_args(&mut args).filter(|value| !value.is_null());
        if let Err(mistake) = check_names(contract, &args) {
            return Err(mistake.into_error(contract, document.keys, args));
        }
        let action = (contract.parse)(args).map_err(invalid)?;
        let source = document.take_source()?;
        Self::with_envelope(action, &mut document, old_timestamp)
            .map(|event| Self { source, ..event })
            .map_err(invalid)
    }

    fn with_envelope(
        action: Action,
        document: &mut Document,
        old_timestamp: Option<Value>,
    ) -> Result<Self, FieldError> {
        let timestamp = match document.take_text("timestamp")? {
            Some(timestamp) => Some(timestamp),
            None => old_timestamp
                .map(|value| text("timestamp", value))
                .transpose()?,
        };
        let shell = document
            .take_text("shell")?
            .map(ShellName::new)
            .transpose()
            .map_err(|error| FieldError::new("shell", error.to_string()))?;
        let once = document.take_text("once")?;
        if once
            .as_deref()
            .is_some_and(|name| !Self::is_once_name(name))
        {
            let max = Self::ONCE_CHARS_MAX;
            let problem = format!("such a name has 1 to {max} visible ASCII characters");
            return Err(FieldError::new("once", problem));
        }
        Ok(Self {
            id: document.take_number("id")?,
            timestamp,
            source: None,
            cause: document.take_number("cause")?,
            timeout: document.take_seconds("timeout")?,
            tool_call_metadata: document.take("tool_call_metadata"),
            llm_metrics: document.take("llm_metrics"),
            shell,
            once,
            action,
        })
    }
}

fn find_contract(keys: &Map<String, Value>) -> Result<&'static ActionContract, DecodeError> {
    let Some(kind) = keys.get("action") else {
        return Err(if keys.contains_key("observation") {
            DecodeError::NotAnAction
        } else {
            DecodeError::NoType {
                event: python_repr::of_object(keys),
            }
        });
    };
    kind.as_str()
        .and_then(contract::find)
        .ok_or_else(|| DecodeError::UnknownAction {
            kind: python_repr::of(kind),
        })
}

/// What can be wrong with the names of the arguments.
enum Mistake {
    Unexpected(String),
    Missing(Vec<&'static str>),
}

/// Python complains of the first argument it does not know before it counts what is missing.
fn check_names(contract: &ActionContract, args: &Map<String, Value>) -> Result<(), Mistake> {
    let is_known =
        |name: &str| contract.required.contains(&name) || contract.optional.contains(&name);
    if let Some(name) = args.keys().find(|name| !is_known(name)) {
        return Err(Mistake::Unexpected(name.clone()));
    }
    let is_missing = |name: &&&str| !args.contains_key(**name);
    let missing: Vec<_> = contract
        .required
        .iter()
        .filter(is_missing)
        .copied()
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Mistake::Missing(missing))
    }
}

impl Mistake {
    /// The text shows the action with its arguments as they are after modernising.
    fn into_error(
        self,
        contract: &ActionContract,
        mut keys: Map<String, Value>,
        args: Map<String, Value>,
    ) -> DecodeError {
        if let Some(place) = keys.get_mut("args") {
            *place = Value::Object(args);
        }
        let (action, class) = (python_repr::of_object(&keys), contract.class);
        match self {
            Self::Unexpected(argument) => DecodeError::UnexpectedArgument {
                action,
                class,
                argument,
            },
            Self::Missing(arguments) => DecodeError::MissingArguments {
                action,
                class,
                arguments,
            },
        }
    }
}
