//! Only `config` reads environment variables, so that every setting has one name, one place and
//! one line in what `zareba config show` prints.
//!
//! Everything else takes the settings, or the environment of a process to start, as a value.

use super::code;
use super::report::Finding;
use super::repository::Repository;

/// Crates that may: the owner, and the one that is not part of the product.
const MAY_READ: &[&str] = &["config", "xtask"];

/// `env::var`, `env::var_os`, `env::vars` and `env::vars_os`.
const READS: &str = "env::var";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.rust_sources() {
        let mut parts = path.split('/').skip(1);
        let (folder, place) = (parts.next(), parts.next());
        // Tests outside of `src` may ask which lane they run in.
        if place != Some("src") || folder.is_some_and(|folder| MAY_READ.contains(&folder)) {
            continue;
        }
        let code = code::without_comments_and_literals(text);
        let lines = code.lines().enumerate();
        let reads = lines.filter(|(_, line)| line.contains(READS));
        findings.extend(reads.map(|(index, _)| {
            let message = "only `config` reads the environment; take the value as an argument";
            Finding::at_line(path, index + 1, message)
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_the_environment_elsewhere_is_found() {
        let read = "//! A.\n// env::var in a comment\nlet home = std::env::var_os(\"HOME\");\n";
        let repository = Repository::of(&[
            ("crates/config/src/lib.rs", read),
            ("crates/wire/src/lib.rs", read),
            ("crates/wire/tests/it/main.rs", read),
        ]);
        let message = "only `config` reads the environment; take the value as an argument";
        assert_eq!(
            check(&repository),
            [Finding::at_line("crates/wire/src/lib.rs", 3, message)]
        );
    }
}
