//! `crates/README.md` is the map of the crates, so every crate has its line there.
//!
//! The other direction, a line without a crate, is found by the check of links.

use super::report::Finding;
use super::repository::Repository;

const MAP: &str = "crates/README.md";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let map = repository.text(MAP).unwrap_or_default();
    repository
        .crates()
        .filter(|(name, _)| !map.contains(&format!("]({name})")))
        .map(|(name, _)| Finding::in_file(MAP, format!("list the crate: [`{name}`]({name})")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_not_listed_is_found() {
        let repository = Repository::of(&[
            (
                "crates/README.md",
                "| [`runtime-native`](runtime-native) | Runs. |\n",
            ),
            ("crates/runtime-native/Cargo.toml", ""),
            ("crates/runtime/Cargo.toml", ""),
        ]);
        assert_eq!(
            check(&repository),
            [Finding::in_file(
                MAP,
                "list the crate: [`runtime`](runtime)"
            )]
        );
    }
}
