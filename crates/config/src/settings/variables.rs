//! Variables for the sandbox.

use std::collections::BTreeMap;
use std::fmt;

/// The variables that every sandbox starts with, by name.
///
/// Tokens are among them as a rule, so the values do not show up when settings are logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SandboxVariables(BTreeMap<String, String>);

impl SandboxVariables {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(crate) fn insert(&mut self, name: String, value: String) {
        self.0.insert(name, value);
    }
}

/// Names only.
impl fmt::Debug for SandboxVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
