//! Names of the code in documents that describe the code: files exist, and names of types, functions
//! and constants occur in a source file.
//!
//! Single small words are not judged, since a document marks other things with backticks, too.

use std::collections::BTreeSet;

use super::{Marking, current, marked};
use crate::tidy::code;
use crate::tidy::report::Finding;
use crate::tidy::repository::Repository;

/// Documents for engineers; a name at the end of a folder stands for all below it.
const ABOUT_CODE: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "crates/README.md",
    "docs/adding-an-action.md",
    "docs/design/",
    "docs/glossary.md",
    "docs/runtimes.md",
    "docs/shells.md",
    "docs/escapes.md",
    "docs/seccomp-profile.md",
];

/// Files that are made when the program runs.
const MADE: &[&str] = &["server.json"];

/// Names of the kernel that no source file spells, and the example of a number in a test's name.
const ELSEWHERE: &[&str] = &["AF_KEY", "AF_XDP", "ns_4"];

/// Ends of names of files that are parts of the repository.
const FILE_ENDINGS: &[&str] = &[".rs", ".rc", ".rare", ".md", ".toml", ".json", ".py"];

pub(in crate::tidy) fn check(repository: &Repository) -> Vec<Finding> {
    let is_about_code = |path: &str| ABOUT_CODE.iter().any(|about| path.starts_with(about));
    let documents: Vec<(&str, &str)> = current(repository)
        .filter(|(path, _)| is_about_code(path))
        .collect();
    if documents.is_empty() {
        return Vec::new();
    }
    let words = words_of_sources(repository);
    let mut findings = pages_of_modules(repository);
    for (path, text) in documents {
        let pieces = marked(text).into_iter();
        for piece in pieces.filter(|piece| piece.place == Marking::Inline) {
            findings.extend(
                fault(repository, &words, piece.text)
                    .map(|fault| Finding::at_line(path, piece.line, fault)),
            );
        }
    }
    findings
}

/// Headers of modules that name a page which does not exist.
fn pages_of_modules(repository: &Repository) -> Vec<Finding> {
    let lines = repository
        .rust_sources()
        .flat_map(|(path, text)| text.lines().enumerate().map(move |line| (path, line)));
    let named = lines.filter_map(|(path, (index, line))| {
        let page = line.strip_prefix("//! Design: ")?.trim_end_matches('.');
        (!repository.contains(page)).then_some((path, index, page))
    });
    named
        .map(|(path, index, page)| {
            Finding::at_line(path, index + 1, format!("there is no page `{page}`"))
        })
        .collect()
}

/// Every word of the repository's code, comments and strings included.
fn words_of_sources(repository: &Repository) -> BTreeSet<&str> {
    let sources = repository.texts().filter(|(path, _)| {
        path.starts_with("crates/") && !path.ends_with(".md") && !path.contains("/tidy/documents/")
    });
    sources.flat_map(|(_, text)| code::words(text)).collect()
}

fn fault(repository: &Repository, words: &BTreeSet<&str>, text: &str) -> Option<String> {
    // `file.rs: function` and `file.rs` alike.
    let (first, rest) = text.split_once(": ").unwrap_or((text, ""));
    if is_file(first) {
        let is_there = MADE.contains(&first) || exists(repository, first);
        let missing = rest.split(' ').find_map(|name| unknown_name(words, name));
        return match is_there {
            false => Some(format!("there is no file `{first}`")),
            true => missing.map(|name| format!("no source file has the name `{name}`")),
        };
    }
    let name = unknown_name(words, text)?;
    Some(format!("no source file has the name `{name}`"))
}

fn is_file(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    FILE_ENDINGS.iter().any(|ending| text.ends_with(ending)) && text.chars().all(is_plain)
}

/// Whether some file has this path, or one that ends with it; folders `src` may be left out.
fn exists(repository: &Repository, path: &str) -> bool {
    let ends_with = |file: &str, path: &str| {
        file.strip_suffix(path)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let files = repository.texts().map(|(file, _)| file);
    let mut same = files
        .filter(|file| ends_with(file, path) || ends_with(&file.replacen("/src/", "/", 1), path));
    same.next().is_some()
}

/// The first part of `Type::function` that no source has. Parts that are plain small words pass.
fn unknown_name<'a>(words: &BTreeSet<&str>, text: &'a str) -> Option<&'a str> {
    let name = text.strip_suffix("()").unwrap_or(text);
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !name.split("::").all(is_name) {
        return None;
    }
    let is_telling = |part: &str| {
        let is_type = part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.contains(|c: char| c.is_ascii_lowercase());
        is_type || part.contains('_') || name.contains("::")
    };
    name.split("::")
        .filter(|part| is_telling(part))
        .find(|part| !words.contains(part) && !ELSEWHERE.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_document(path: &str, text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[
            (
                "crates/wire/src/server/gate.rs",
                "struct Gate; fn let_in() {}",
            ),
            (path, text),
        ]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn names_and_files_that_exist_pass() {
        let text = "`Gate`, `Gate::let_in`, `gate.rs`, `wire/src/server/gate.rs`, `server/gate.rs`,\n\
                    `wire/server/gate.rs: let_in`, `native`, `POST`, `zareba serve`, `c` and Nothing in prose\n";
        assert_eq!(check_document("docs/design/a.md", text), []);
    }

    #[test]
    fn names_and_files_that_do_not_exist_are_found() {
        let text = "`Gates`\n`let_out`\n`Gate::open`\n`wire/gate.rs`\n`gate.rs: let_out`\n";
        assert_eq!(
            check_document("ARCHITECTURE.md", text),
            [
                (Some(1), "no source file has the name `Gates`".to_owned()),
                (Some(2), "no source file has the name `let_out`".to_owned()),
                (Some(3), "no source file has the name `open`".to_owned()),
                (Some(4), "there is no file `wire/gate.rs`".to_owned()),
                (Some(5), "no source file has the name `let_out`".to_owned()),
            ]
        );
    }

    #[test]
    fn a_header_that_names_a_page_which_does_not_exist_is_found() {
        let text = "//! Disk.\n//!\n//! Design: docs/design/disk.md.\n";
        let files = [("crates/a/src/lib.rs", text), ("docs/design/README.md", "")];
        let message = "there is no page `docs/design/disk.md`";
        assert_eq!(
            check(&Repository::of(&files)),
            [Finding::at_line("crates/a/src/lib.rs", 3, message)]
        );
        let with_page = [files[0], files[1], ("docs/design/disk.md", "")];
        assert_eq!(check(&Repository::of(&with_page)), []);
    }

    #[test]
    fn documents_for_users_are_not_judged() {
        assert_eq!(check_document("docs/tools.md", "`Gates`\n"), []);
    }
}
