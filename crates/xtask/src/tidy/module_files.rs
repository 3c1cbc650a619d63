//! A module with children is `files.rs` beside `files/`, never `files/mod.rs`.
//!
//! Clippy has a lint for this, but it does not look into integration tests.

use super::report::Finding;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_sources()
        .filter(|(path, _)| path.ends_with("/mod.rs"))
        .map(|(path, _)| {
            Finding::in_file(
                path,
                "name this file after its module and put it beside the folder",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mod_files_are_found_in_sources_and_tests() {
        let repository = Repository::of(&[
            ("crates/a/src/files.rs", ""),
            ("crates/a/src/files/mod.rs", ""),
            ("crates/a/tests/it/shell/mod.rs", ""),
        ]);
        let found: Vec<String> = check(&repository).into_iter().map(|f| f.path).collect();
        assert_eq!(
            found,
            [
                "crates/a/src/files/mod.rs",
                "crates/a/tests/it/shell/mod.rs"
            ]
        );
    }
}
