//! Variables that a client sets in an executor that runs already, as both ends understand them.
//!
//! They are for everything that the executor starts for a client: shells, programs and terminals.
//! The checks are here because both ends, and a server before it makes a sandbox, need the same.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

/// Variables of one executor or session.
pub const VARIABLES_MAX: usize = 1000;
/// Bytes of all names and values together. The kernel gives a program twice as much for its
/// variables and arguments, with the usual limit of its stack.
pub const VARIABLES_BYTES_MAX: usize = 1024 * 1024;
/// What Linux lets a variable have, with its name, a `=` and a NUL.
pub const VARIABLE_BYTES_MAX: usize = 128 * 1024 - 2;

/// A variable that cannot be set, or one too many. The text names no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidVariable {
    /// What is wrong, and what to do.
    pub message: String,
}

/// Values for some variables, and the names of others that are removed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VariableChanges(BTreeMap<String, Option<String>>);

impl VariableChanges {
    /// Checks names and values; `None` removes a variable. Of equal names the last one counts.
    ///
    /// # Errors
    /// When a name or a value cannot be one, or there are too many.
    pub fn new(
        changes: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Self, InvalidVariable> {
        let changes: BTreeMap<_, _> = changes.into_iter().collect();
        let mut amount = VariableAmount::default();
        for (name, value) in &changes {
            let value = value.as_deref().unwrap_or_default();
            check_variable(name, value)?;
            amount.add(name, value)?;
        }
        amount.check()?;
        Ok(Self(changes))
    }

    /// Sets these variables and removes none.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn set(pairs: Vec<(String, String)>) -> Result<Self, InvalidVariable> {
        let pairs = pairs.into_iter();
        Self::new(pairs.map(|(name, value)| (name, Some(value))))
    }

    /// Names and new values; `None` for a variable that is removed.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let changes = self.0.iter();
        changes.map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As it travels: an object of texts, with `null` for what is removed.
    pub fn to_json(&self) -> Value {
        let fields = self.iter();
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub(crate) fn from_json(document: &[u8]) -> Result<Self, InvalidVariable> {
        let read: Result<BTreeMap<String, Option<String>>, _> = serde_json::from_slice(document);
        // The parser's own text may repeat a value.
        let changes = read.map_err(|_| {
            invalid(
                "give an object of variables, each with a text, or null to remove it".to_owned(),
            )
        })?;
        Self::new(changes)
    }
}

/// Names only: values are where people keep their secrets.
impl fmt::Debug for VariableChanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// How many variables there are, and how large they are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariableAmount {
    count: usize,
    bytes: usize,
}

impl VariableAmount {
    /// Counts one more.
    ///
    /// # Errors
    /// When it alone is too large.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), InvalidVariable> {
        let own = name.len() + value.len();
        if own > VARIABLE_BYTES_MAX {
            let shown: String = name.chars().take(64).collect();
            return Err(invalid(format!(
                "the variable `{shown}` has {own} bytes with its name; \
                 {VARIABLE_BYTES_MAX} are possible: put it into a file"
            )));
        }
        self.count += 1;
        self.bytes += own;
        Ok(())
    }

    /// # Errors
    /// When they are too many or too large together.
    pub fn check(self) -> Result<(), InvalidVariable> {
        let Self { count, bytes } = self;
        if count > VARIABLES_MAX || bytes > VARIABLES_BYTES_MAX {
            return Err(invalid(format!(
                "a session may have {VARIABLES_MAX} variables with {VARIABLES_BYTES_MAX} bytes \
                 together; these are {count} with {bytes}"
            )));
        }
        Ok(())
    }
}

/// Checks that a shell can have a variable of this name and a process can be given its value.
///
/// # Errors
/// For a name that is not made of letters, digits and `_` or that begins with a digit, and for a
/// value with a NUL character.
pub fn check_variable(name: &str, value: &str) -> Result<(), InvalidVariable> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let begins_well = name.bytes().next().is_some_and(is_letter);
    let goes_on_well = name
        .bytes()
        .all(|byte| is_letter(byte) || byte.is_ascii_digit());
    if !(begins_well && goes_on_well) {
        let name = name.escape_debug();
        return Err(invalid(format!(
            "`{name}` cannot name a variable: use letters, digits and `_`, no digit first"
        )));
    }
    if value.contains('\0') {
        return Err(invalid(format!(
            "the value of `{name}` has a NUL character, which no process can get"
        )));
    }
    Ok(())
}

fn invalid(message: String) -> InvalidVariable {
    InvalidVariable { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(pairs: &[(&str, Option<&str>)]) -> Result<VariableChanges, InvalidVariable> {
        let pairs = pairs.iter();
        VariableChanges::new(
            pairs.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))),
        )
    }

    #[test]
    fn changes_travel_as_they_are_and_show_no_value() {
        let odd = "it's \"quoted\"\n\t$HOME `id` \\ 日本語";
        let sent = changes(&[("A", Some(odd)), ("GONE", None), ("_b2", Some(""))]).unwrap();
        let document = sent.to_json().to_string();
        assert_eq!(
            VariableChanges::from_json(document.as_bytes()),
            Ok(sent.clone())
        );
        assert_eq!(format!("{sent:?}"), r#"{"A", "GONE", "_b2"}"#);
    }

    #[test]
    fn a_document_that_is_no_set_of_variables_is_refused_without_its_values() {
        for document in [
            "[]",
            r#"{"A": 7654321}"#,
            r#"{"A":"secret"#,
            r#"{"A B": "secret"}"#,
        ] {
            let error = VariableChanges::from_json(document.as_bytes()).unwrap_err();
            assert!(!error.message.contains("secret"), "{document}: {error}");
            assert!(!error.message.contains("7654321"), "{document}: {error}");
        }
    }

    #[test]
    fn names_that_would_be_code_are_refused() {
        for name in ["", "1A", "A B", "A;id", "A$(id)", "é", "A-B", "A\n"] {
            changes(&[(name, Some("x"))]).unwrap_err();
            changes(&[(name, None)]).unwrap_err();
        }
        changes(&[("A", Some("x\0y"))]).unwrap_err();
    }

    #[test]
    fn what_no_program_could_be_started_with_is_refused() {
        let long = "x".repeat(VARIABLE_BYTES_MAX);
        let error = changes(&[("A", Some(&long))]).unwrap_err();
        assert!(error.message.contains("put it into a file"), "{error}");
        changes(&[("A", Some(&long[1..]))]).unwrap();
        let many = (0..=VARIABLES_MAX).map(|number| (format!("V{number}"), Some(String::new())));
        VariableChanges::new(many).unwrap_err();
        let large = (0..9).map(|number| (format!("V{number}"), Some(long[2..].to_owned())));
        VariableChanges::new(large).unwrap_err();
    }
}
