//! What somebody probably meant who wrote a name that does not exist.

use crate::environment::RESERVED_VARIABLES;
use crate::key::{self, Key, VARIABLE_PREFIX};
use crate::layer::ENV_SECTION;
use crate::nearest::nearest;
use crate::problem::Hint;
use crate::settings::openhands::FOREIGN_SECTIONS;

/// The nearest key of the same section; failing that, of any section; failing that, the section's
/// keys.
pub(crate) fn for_key(path: &str) -> Option<Hint> {
    let Some((section, name)) = path.rsplit_once('.') else {
        return for_bare_key(path);
    };
    let siblings = names_in(section);
    if let Some(near) = nearest(name, siblings.iter().copied()) {
        return Some(Hint::DidYouMean(format!("{section}.{near}")));
    }
    if let Some(elsewhere) = paths().find(|path| last(path) == name) {
        return Some(Hint::DidYouMean(elsewhere.to_owned()));
    }
    match siblings.is_empty() {
        true => nearest(path, paths()).map(|near| Hint::DidYouMean(near.to_owned())),
        false => Some(valid(siblings)),
    }
}

/// The nearest section, or all of them.
pub(crate) fn for_section(name: &str) -> Hint {
    let sections = sections();
    match nearest(name, sections.iter().copied().chain(FOREIGN_SECTIONS)) {
        Some(near) => Hint::DidYouMean(format!("[{near}]")),
        None => valid(sections),
    }
}

/// The nearest variable of ours; failing that, those of its section.
pub(crate) fn for_variable(name: &str) -> Option<Hint> {
    let own: Vec<String> = key::all()
        .iter()
        .map(|key| key.own_variable().name)
        .collect();
    // The prefix is common to all and would make everything look near.
    let unprefixed = |name: &'_ str| name.strip_prefix(VARIABLE_PREFIX).map(str::to_owned);
    let rest = unprefixed(name)?;
    let candidates: Vec<String> = own
        .iter()
        .map(String::as_str)
        .chain(RESERVED_VARIABLES)
        .filter_map(unprefixed)
        .collect();
    if let Some(near) = nearest(&rest, candidates.iter().map(String::as_str)) {
        return Some(Hint::DidYouMean(format!("{VARIABLE_PREFIX}{near}")));
    }
    let section = rest.split('_').next()?.to_ascii_lowercase();
    let of_section = |key: &&&Key| key.section.split('.').next() == Some(section.as_str());
    let siblings = key::all().iter().filter(of_section);
    let names: Vec<String> = siblings.map(|key| key.own_variable().name).collect();
    (!names.is_empty()).then_some(Hint::Valid(names))
}

/// A key without a section: the same name in a section, or one like it.
fn for_bare_key(name: &str) -> Option<Hint> {
    let exact = paths().find(|path| last(path) == name);
    let near = || {
        let near = nearest(name, paths().map(last))?;
        paths().find(|path| last(path) == near)
    };
    exact
        .or_else(near)
        .map(|path| Hint::DidYouMean(path.to_owned()))
}

fn valid(names: Vec<&str>) -> Hint {
    Hint::Valid(names.into_iter().map(str::to_owned).collect())
}

/// Every section that is read, in order.
pub(crate) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&str> = Vec::new();
    for key in key::all() {
        if !sections.contains(&key.section) {
            sections.push(key.section);
        }
    }
    sections.push(ENV_SECTION);
    sections
}

/// The keys of a section, aliases included.
fn names_in(section: &str) -> Vec<&'static str> {
    let in_section = |path: &'static str| {
        path.rsplit_once('.')
            .filter(|(name, _)| *name == section)
            .map(|(_, key)| key)
    };
    paths().filter_map(in_section).collect()
}

/// Our own paths first, so that they win over OpenHands' when both are equally near.
fn paths() -> impl Iterator<Item = &'static str> {
    let own = key::all().iter().map(|key: &&Key| key.path);
    own.chain(key::all().iter().filter_map(|key| key.alias))
}

fn last(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}
