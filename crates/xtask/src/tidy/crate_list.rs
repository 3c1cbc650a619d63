//! `crates/README.md` is the map of the crates: every crate has its line there, with the crates that it
//! may use.
//!
//! The other direction, a line without a crate, is found by the check of links.

use super::layers;
use super::report::Finding;
use super::repository::Repository;

const MAP: &str = "crates/README.md";

/// The one crate whose row does not list what it uses.
const EVERYTHING: &str = "everything it starts";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let map = repository.text(MAP).unwrap_or_default();
    let names = repository.crates().map(|(name, _)| name);
    names
        .filter_map(|name| match row(map, name) {
            None => Some(Finding::in_file(
                MAP,
                format!("list the crate: [`{name}`]({name})"),
            )),
            Some((line, row)) => {
                let expected = may_use(name)?;
                let found = row.trim_end_matches([' ', '|']).rsplit('|').next()?.trim();
                let message = format!("say that `{name}` may use: {expected}");
                let is_right = found == expected || found == EVERYTHING;
                (!is_right).then(|| Finding::at_line(MAP, line, message))
            }
        })
        .collect()
}

/// The row of a crate, with its number.
fn row<'a>(map: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let link = format!("]({name})");
    let mut lines = map.lines().enumerate();
    let (index, row) = lines.find(|(_, line)| line.contains(&link))?;
    Some((index + 1, row))
}

/// The last column of a crate's row.
fn may_use(name: &str) -> Option<String> {
    let names = layers::may_use(name)?
        .iter()
        .map(|name| format!("`{name}`"));
    let names: Vec<String> = names.collect();
    Some(match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_not_listed_and_a_wrong_list_are_found() {
        let map = "| [`wire`](wire) | Carries. | `protocol` |\n\
                   | [`client`](client) | Asks. | `protocol` |\n\
                   | [`protocol`](protocol) | Names. | none |\n\
                   | [`cli`](cli) | Starts. | everything it starts |\n";
        let repository = Repository::of(&[
            ("crates/README.md", map),
            ("crates/wire/Cargo.toml", ""),
            ("crates/client/Cargo.toml", ""),
            ("crates/protocol/Cargo.toml", ""),
            ("crates/cli/Cargo.toml", ""),
            ("crates/runtime/Cargo.toml", ""),
        ]);
        assert_eq!(
            check(&repository),
            [
                Finding::at_line(MAP, 2, "say that `client` may use: `protocol`, `api`"),
                Finding::in_file(MAP, "list the crate: [`runtime`](runtime)"),
            ]
        );
    }
}
