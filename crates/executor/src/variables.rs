//! The one set of variables that clients change while an executor runs.
//!
//! Shells, programs and terminals that start get the set with their environment. A shell that is
//! there remembers which version of the set it has, and gets what has changed since with its next
//! command (`shell/process`), so that nothing interrupts it. A removed variable stays in the set by
//! its name: it may be one of the environment, too.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use zareba_wire::variables::{InvalidVariable, VariableAmount, VariableChanges};

/// The set, shared by all that starts processes. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedVariables {
    set: Arc<Mutex<VariableSet>>,
}

#[derive(Default)]
struct VariableSet {
    /// The number of the last change; 0 before the first.
    version: u64,
    by_name: BTreeMap<String, Versioned>,
}

/// A value, or that it was removed, and since which version.
struct Versioned {
    value: Option<Arc<str>>,
    since: u64,
}

/// What a shell has to catch up with.
#[derive(Clone, Default)]
pub(crate) struct VariableUpdate {
    /// The version that it has afterwards.
    pub(crate) version: u64,
    /// Names and values; `None` for those that are removed.
    pub(crate) entries: Vec<(String, Option<Arc<str>>)>,
}

impl SharedVariables {
    /// Changes the set: all of it or, when there would be too much in it, nothing.
    pub(crate) fn change(&self, changes: &VariableChanges) -> Result<(), InvalidVariable> {
        let mut set = self.lock();
        let mut amount = VariableAmount::default();
        let changed = |name: &str| changes.iter().any(|(other, _)| other == name);
        for (name, entry) in set.by_name.iter().filter(|(name, _)| !changed(name)) {
            amount.add(name, entry.value.as_deref().unwrap_or_default())?;
        }
        for (name, value) in changes.iter() {
            amount.add(name, value.unwrap_or_default())?;
        }
        amount.check()?;
        set.version += 1;
        let since = set.version;
        for (name, value) in changes.iter() {
            let value = value.map(Arc::from);
            set.by_name
                .insert(name.to_owned(), Versioned { value, since });
        }
        Ok(())
    }

    /// Puts the set into an environment, and says which version it was.
    pub(crate) fn apply_to(&self, environment: &mut Vec<(OsString, OsString)>) -> u64 {
        let set = self.lock();
        environment.retain(|(name, _)| {
            let name = name.to_str();
            !name.is_some_and(|name| set.by_name.contains_key(name))
        });
        for (name, entry) in &set.by_name {
            if let Some(value) = &entry.value {
                environment.push((name.into(), value.as_ref().into()));
            }
        }
        set.version
    }

    /// What has changed since a version.
    pub(crate) fn since(&self, version: u64) -> VariableUpdate {
        let set = self.lock();
        let mut update = VariableUpdate {
            version: set.version,
            entries: Vec::new(),
        };
        if set.version != version {
            let changed = set
                .by_name
                .iter()
                .filter(|(_, entry)| entry.since > version);
            let changed = changed.map(|(name, entry)| (name.clone(), entry.value.clone()));
            update.entries.extend(changed);
        }
        update
    }

    fn lock(&self) -> MutexGuard<'_, VariableSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names only: values are where people keep their secrets.
impl std::fmt::Debug for VariableSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// Names only, as above.
impl std::fmt::Debug for VariableUpdate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.entries.iter().map(|(name, _)| name);
        formatter.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use zareba_wire::variables::VARIABLES_MAX;

    use super::*;

    fn changes(pairs: &[(&str, Option<&str>)]) -> VariableChanges {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
        VariableChanges::new(pairs).unwrap()
    }

    fn told(update: VariableUpdate) -> (u64, Vec<(String, Option<String>)>) {
        let entries = update.entries.into_iter();
        let entries = entries.map(|(name, value)| (name, value.map(|value| value.to_string())));
        (update.version, entries.collect())
    }

    #[test]
    fn a_reader_gets_what_changed_since_its_version_and_nothing_twice() {
        let set = SharedVariables::default();
        assert_eq!(told(set.since(0)), (0, vec![]));
        set.change(&changes(&[("A", Some("1")), ("B", Some("2"))]))
            .unwrap();
        set.change(&changes(&[("A", None)])).unwrap();
        let a = ("A".to_owned(), None);
        assert_eq!(told(set.since(1)), (2, vec![a.clone()]));
        let b = ("B".to_owned(), Some("2".to_owned()));
        assert_eq!(told(set.since(0)), (2, vec![a, b]));
        assert_eq!(told(set.since(2)), (2, vec![]));
    }

    #[test]
    fn an_environment_gets_the_values_and_loses_what_is_removed() {
        let set = SharedVariables::default();
        set.change(&changes(&[("A", Some("new")), ("GONE", None)]))
            .unwrap();
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        };
        let mut environment = pairs(&[("A", "old"), ("GONE", "x"), ("KEPT", "y")]);
        assert_eq!(set.apply_to(&mut environment), 1);
        assert_eq!(environment, pairs(&[("KEPT", "y"), ("A", "new")]));
    }

    #[test]
    fn a_change_beyond_the_limits_changes_nothing() {
        let set = SharedVariables::default();
        let names = (0..VARIABLES_MAX).map(|number| (format!("V{number}"), Some("1".to_owned())));
        set.change(&VariableChanges::new(names).unwrap()).unwrap();
        set.change(&changes(&[("V0", Some("2")), ("ONE_MORE", Some("1"))]))
            .unwrap_err();
        assert_eq!(told(set.since(1)), (1, vec![]));
        set.change(&changes(&[("V0", Some("2"))])).unwrap();
    }
}
