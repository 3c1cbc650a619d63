//! [`Entrypoint`]: what names functions of Python.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest entrypoint.
const BYTES_MAX: usize = 64 * 1024;

/// `package.module.attribute`, followed by a JSON object when the attribute is a toolkit that is
/// made with arguments: `camel.toolkits.MathToolkit`, `my.Counter{"start": 5}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Entrypoint {
    text: String,
    module: String,
    attribute: String,
    arguments: Option<Map<String, Value>>,
}

/// A text that is no entrypoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is no entrypoint: {problem}; write `module.attribute`, or `module.Toolkit{{\"argument\": 1}}`",
    short(text)
)]
pub struct InvalidEntrypoint {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Entrypoint {
    /// The module to import.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// What to take of it.
    pub fn attribute(&self) -> &str {
        &self.attribute
    }

    /// What to make a toolkit with.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.arguments.as_ref()
    }

    /// The very text that it was made of.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Entrypoint {
    type Err = InvalidEntrypoint;

    fn from_str(text: &str) -> Result<Self, InvalidEntrypoint> {
        let refuse = |problem: String| InvalidEntrypoint {
            text: text.to_owned(),
            problem,
        };
        if text.len() > BYTES_MAX {
            return Err(refuse(format!("it is longer than {BYTES_MAX} bytes")));
        }
        let (path, json) = match text.find('{') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let Some((module, attribute)) = path.trim().rsplit_once('.') else {
            return Err(refuse("there is no dot in it".to_owned()));
        };
        let mut names = module.split('.').chain([attribute]);
        if let Some(odd) = names.find(|name| !is_identifier(name)) {
            return Err(refuse(format!("`{}` is no name", odd.escape_debug())));
        }
        let arguments = match json {
            "" => None,
            json => Some(serde_json::from_str(json).map_err(|error| {
                refuse(format!("what follows the name is no JSON object: {error}"))
            })?),
        };
        Ok(Self {
            text: text.to_owned(),
            module: module.to_owned(),
            attribute: attribute.to_owned(),
            arguments,
        })
    }
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next();
    first.is_some_and(|c| c == '_' || c.is_alphabetic())
        && characters.all(|c| c == '_' || c.is_alphanumeric())
}

fn short(text: &str) -> String {
    text.chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect()
}

impl TryFrom<String> for Entrypoint {
    type Error = InvalidEntrypoint;

    fn try_from(text: String) -> Result<Self, InvalidEntrypoint> {
        text.parse()
    }
}

impl From<Entrypoint> for String {
    fn from(entrypoint: Entrypoint) -> Self {
        entrypoint.text
    }
}

impl fmt::Display for Entrypoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entrypoint_is_a_dotted_name_with_or_without_arguments() {
        for (text, module, attribute, arguments) in [
            (
                "camel.toolkits.MathToolkit",
                "camel.toolkits",
                "MathToolkit",
                None,
            ),
            ("m.f", "m", "f", None),
            ("m.C{}", "m", "C", Some(json!({}))),
            (
                r#"m.C{"a": {"b": {"c": "}{"}}, "d": 1}"#,
                "m",
                "C",
                Some(json!({"a": {"b": {"c": "}{"}}, "d": 1})),
            ),
        ] {
            let entrypoint: Entrypoint = text.parse().unwrap();
            assert_eq!(entrypoint.module(), module);
            assert_eq!(entrypoint.attribute(), attribute);
            let given = entrypoint.arguments().cloned().map(Value::Object);
            assert_eq!(given, arguments);
            assert_eq!(entrypoint.to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        for (text, problem) in [
            ("math", "no dot"),
            ("", "no dot"),
            (".f", "`` is no name"),
            ("m.", "`` is no name"),
            ("m.C{", "no JSON object"),
            ("m.C{1}", "no JSON object"),
            (r#"m.C{"a": 1} x"#, "no JSON object"),
            ("m.C[1]", "`C[1]` is no name"),
            ("m.a b", "`a b` is no name"),
            ("--host.x", "is no name"),
        ] {
            let error = text.parse::<Entrypoint>().unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,100}") {
            if let Ok(entrypoint) = text.parse::<Entrypoint>() {
                prop_assert_eq!(entrypoint.to_string(), text);
            }
        }
    }
}
