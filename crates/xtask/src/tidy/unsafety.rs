//! Only the crates that talk to the kernel directly may contain `unsafe`, or lift the lint.

use super::code;
use super::report::Finding;
use super::repository::Repository;

/// Folders of the crates whose job cannot be done without; each keeps it in one module.
const MAY_BE_UNSAFE: &[&str] = &["terminal", "confine"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_sources()
        .filter(|(path, _)| !may_be_unsafe(path))
        .flat_map(|(path, text)| unsafe_lines(path, text))
        .collect()
}

fn may_be_unsafe(path: &str) -> bool {
    let folder = path.split('/').nth(1);
    folder.is_some_and(|folder| MAY_BE_UNSAFE.contains(&folder))
}

fn unsafe_lines(path: &str, text: &str) -> Vec<Finding> {
    code::without_comments_and_literals(text)
        .lines()
        .enumerate()
        .filter(|(_, line)| code::words(line).any(|word| matches!(word, "unsafe" | "unsafe_code")))
        .map(|(index, _)| {
            let allowed = MAY_BE_UNSAFE.join("` and `");
            Finding::at_line(
                path,
                index + 1,
                format!("only `{allowed}` may be unsafe; put a safe function there"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_outside_the_two_crates_is_found() {
        let repository = Repository::of(&[
            ("crates/terminal/src/sys.rs", "unsafe { libc::fork() };\n"),
            (
                "crates/wire/src/lib.rs",
                "// unsafe in a comment\n#![expect(unsafe_code)]\nlet a = \"unsafe\";\n\
                 let b = unsafe { c() };\n",
            ),
        ]);
        let message = "only `terminal` and `confine` may be unsafe; put a safe function there";
        assert_eq!(
            check(&repository),
            [
                Finding::at_line("crates/wire/src/lib.rs", 2, message),
                Finding::at_line("crates/wire/src/lib.rs", 4, message),
            ]
        );
    }
}
