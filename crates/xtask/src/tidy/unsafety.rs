//! Only the files that talk to the kernel directly may contain `unsafe`, or lift the lint.

use super::code;
use super::report::Finding;
use super::repository::Repository;

/// Files, and folders that end with a slash, whose job cannot be done without.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/confine/src/paths/sys.rs",
    "crates/confine/src/signals.rs",
    "crates/confine/src/sys.rs",
    "crates/terminal/src/sys.rs",
    "crates/terminal/src/sys/",
    // Their tests do what a hostile program does.
    "crates/confine/tests/",
    "crates/terminal/tests/",
];

/// The crates that they are in.
const CRATES: &str = "`terminal` and `confine`";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_sources()
        .filter(|(path, _)| !may_be_unsafe(path))
        .flat_map(|(path, text)| unsafe_lines(path, text))
        .collect()
}

fn may_be_unsafe(path: &str) -> bool {
    MAY_BE_UNSAFE
        .iter()
        .any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

fn unsafe_lines(path: &str, text: &str) -> Vec<Finding> {
    code::without_comments_and_literals(text)
        .lines()
        .enumerate()
        .filter(|(_, line)| code::words(line).any(|word| matches!(word, "unsafe" | "unsafe_code")))
        .map(|(index, _)| {
            Finding::at_line(
                path,
                index + 1,
                format!("only `sys` modules of {CRATES} may be unsafe; put a safe function there"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_outside_of_its_files_is_found() {
        let repository = Repository::of(&[
            (
                "crates/terminal/src/screen.rs",
                "unsafe { libc::fork() };\n",
            ),
            ("crates/terminal/src/sys.rs", "unsafe { libc::fork() };\n"),
            (
                "crates/terminal/src/sys/start.rs",
                "unsafe { libc::fork() };\n",
            ),
            (
                "crates/wire/src/lib.rs",
                "// unsafe in a comment\n#![expect(unsafe_code)]\nlet a = \"unsafe\";\n\
                 let b = unsafe { c() };\n",
            ),
        ]);
        let message = "only `sys` modules of `terminal` and `confine` may be unsafe; put a safe function there";
        assert_eq!(
            check(&repository),
            [
                Finding::at_line("crates/terminal/src/screen.rs", 1, message),
                Finding::at_line("crates/wire/src/lib.rs", 2, message),
                Finding::at_line("crates/wire/src/lib.rs", 4, message),
            ]
        );
    }
}
