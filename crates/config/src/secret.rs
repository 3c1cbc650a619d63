//! Values that must not be printed.

use std::collections::BTreeMap;
use std::fmt;

use crate::value::Value;

/// What stands in the place of a secret wherever settings are shown.
pub(crate) const MASK: &str = "***";

/// A password, key or token from the configuration.
///
/// It has no way to its text but [`Secret::expose`], so that a settings value can be logged or
/// shown as a whole without leaking it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text of a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that has to send or compare it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Whether a variable or table entry of this name probably holds a secret.
///
/// Only names that we do not declare ourselves are judged like this: declared settings have the
/// type [`Secret`] or they have not.
pub(crate) fn looks_secret(name: &str) -> bool {
    const LAST_WORDS: [&str; 8] = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "credentials",
        "authorization",
    ];
    let name = name.to_ascii_lowercase();
    let last_word = name.rsplit(['_', '-']).next().unwrap_or_default();
    LAST_WORDS.contains(&last_word)
        || LAST_WORDS.contains(&name.as_str())
        || name.ends_with("apikey")
}

/// The value with every entry that looks secret replaced. The nesting is as deep as the parser
/// that made the value allowed.
pub(crate) fn mask(name: &str, value: Value) -> Value {
    match value {
        Value::Table(entries) => Value::Table(
            entries
                .into_iter()
                .map(|(name, value)| {
                    let masked = mask(&name, value);
                    (name, masked)
                })
                .collect::<BTreeMap<_, _>>(),
        ),
        Value::List(items) if !looks_secret(name) => {
            Value::List(items.into_iter().map(|item| mask(name, item)).collect())
        }
        Value::Null => Value::Null,
        _ if looks_secret(name) => Value::Text(MASK.to_owned()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(***)");
    }

    #[test]
    fn secrets_are_recognised_by_the_last_word_of_their_name() {
        for name in [
            "GITHUB_TOKEN",
            "api_key",
            "OPENAI_API_KEY",
            "apikey",
            "DB_PASSWORD",
            "Authorization",
            "key",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["TOKENIZER", "KEYBOARD", "key_path", "monkey", "PATH", ""] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
