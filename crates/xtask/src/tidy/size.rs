//! A file that has grown past the limit is split, or says in its module doc why it is not.
//!
//! Counted are lines of code: no comments, no blank lines, no tests.

use super::code;
use super::report::Finding;
use super::repository::Repository;

/// Past this a reader loses the thread; most files are below half of it.
const CODE_LINES_MAX: usize = 600;

/// How a module doc introduces its reason for being longer.
const EXCUSE: &str = "//! Long on purpose: ";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_sources()
        .filter(|(path, text)| !is_test(path) && !has_excuse(text))
        .filter_map(|(path, text)| {
            let lines = code_lines(text);
            (lines > CODE_LINES_MAX).then(|| {
                Finding::in_file(
                    path,
                    format!(
                        "{lines} lines of code, more than {CODE_LINES_MAX}; split it, or give \
                         the reason in a doc line that starts with `{EXCUSE}`"
                    ),
                )
            })
        })
        .collect()
}

/// Whether the whole file is tests, by the places where tests live.
fn is_test(path: &str) -> bool {
    path.ends_with("_tests.rs")
        || path.ends_with("/tests.rs")
        || path
            .split('/')
            .any(|part| matches!(part, "tests" | "benches"))
}

fn has_excuse(text: &str) -> bool {
    text.lines()
        .take_while(|line| line.starts_with("//!"))
        .any(|line| line.starts_with(EXCUSE) && line.len() > EXCUSE.len())
}

fn code_lines(text: &str) -> usize {
    let code = code::without_comments_and_literals(text);
    let mut lines = code.lines().filter(|line| !line.trim().is_empty());
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            skip_item(&mut lines);
        } else {
            count += 1;
        }
    }
    count
}

/// Moves past the item that a `#[cfg(test)]` belongs to: up to its closing brace, or its semicolon.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let mut depth = 0_usize;
    for line in lines {
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        let ends_item = line.ends_with('}') || line.ends_with(';');
        if depth == 0 && ends_item {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_file(path: &str, text: &str) -> usize {
        check(&Repository::of(&[(path, text)])).len()
    }

    #[test]
    fn a_long_file_is_found_unless_it_says_why() {
        let body = "call();\n".repeat(CODE_LINES_MAX + 1);
        let path = "crates/a/src/lib.rs";
        assert_eq!(check_file(path, &format!("//! A.\n{body}")), 1);
        assert_eq!(check_file(path, &format!("//! A.\n{EXCUSE}\n{body}")), 1);
        let excused = format!("//! A.\n{EXCUSE}one flat table.\n{body}");
        assert_eq!(check_file(path, &excused), 0);
    }

    #[test]
    fn tests_do_not_count() {
        let body = "call();\n".repeat(CODE_LINES_MAX + 1);
        assert_eq!(check_file("crates/a/src/lib_tests.rs", &body), 0);
        assert_eq!(check_file("crates/a/tests/it/main.rs", &body), 0);
        let inline = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(check_file("crates/a/src/lib.rs", &inline), 0);
    }

    #[test]
    fn only_code_is_counted() {
        let text = "//! A.\n\n/// Doc.\nfn a() {\n    /* more\n */\n    b(\"x\ny\");\n}\n\
                    #[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\nfn c() {}\n\
                    #[cfg(test)]\nmod more {\n    fn d() {}\n}\nfn e() {}\n";
        // `fn a() {`, the two lines of the call, `}`, `fn c() {}` and `fn e() {}`.
        assert_eq!(code_lines(text), 6);
    }
}
