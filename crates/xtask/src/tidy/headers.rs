//! Every source file opens with a `//!` that says what it is for.

use super::report::Finding;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_sources()
        .filter(|(_, text)| !says_what_it_is_for(text))
        .map(|(path, _)| {
            Finding::at_line(
                path,
                1,
                "open the file with a `//!` that says what it is for",
            )
        })
        .collect()
}

/// The first line is a module doc with words in it.
fn says_what_it_is_for(text: &str) -> bool {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix("//!"))
        .is_some_and(|words| !words.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_opening_doc_are_found() {
        let repository = Repository::of(&[
            ("crates/a/src/lib.rs", "//! What it is for.\n"),
            ("crates/a/src/silent.rs", "use std::fs;\n//! Too late.\n"),
            ("crates/a/src/void.rs", "//!\n"),
            ("crates/a/tests/fixtures/input.rs", "fn main() {}\n"),
        ]);

        let message = "open the file with a `//!` that says what it is for";
        assert_eq!(
            check(&repository),
            [
                Finding::at_line("crates/a/src/silent.rs", 1, message),
                Finding::at_line("crates/a/src/void.rs", 1, message),
            ]
        );
    }
}
