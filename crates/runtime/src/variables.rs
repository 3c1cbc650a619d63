//! Variables of shells as a spec has them.

use std::fmt;

use zareba_wire::variables::check_variable;

use crate::RuntimeError;

/// Variables whose names a shell can have and whose values a process can be given.
#[derive(Clone, PartialEq, Eq)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Checks names and values. Of equal names the last one counts.
    ///
    /// # Errors
    /// [`RuntimeError::Invalid`] for a name that is not made of letters, digits and `_` or that
    /// begins with a digit, and for a value with a NUL character.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, RuntimeError> {
        let mut checked: Vec<(String, String)> = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            check_variable(&name, &value)?;
            checked.retain(|(other, _)| *other != name);
            checked.push((name, value));
        }
        Ok(Self(checked))
    }

    /// Names and values, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names only: values are where people keep their secrets.
impl fmt::Debug for Variables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use zareba_protocol::ErrorClass;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Result<Variables, RuntimeError> {
        let pairs = pairs.iter();
        Variables::new(
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let set = variables(&[("A", "1"), ("B", "2"), ("A", "3")]).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [("B", "2"), ("A", "3")]);
    }

    #[test]
    fn names_that_would_be_code_are_refused() {
        for name in ["", "1A", "A B", "A;id", "A$(id)", "é", "A-B", "A\n"] {
            let error = variables(&[(name, "x")]).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Invalid, "{name:?}");
        }
        let error = variables(&[("A", "x\0y")]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Invalid);
    }

    #[test]
    fn values_do_not_show_up_in_logs() {
        let set = variables(&[("TOKEN", "secret")]).unwrap();
        assert_eq!(format!("{set:?}"), r#"{"TOKEN"}"#);
    }
}
