//! Documents name only what exists: routes, settings, variables, commands, flags, and in documents
//! for engineers files and names of the code. So do messages and comments of the program, as far as
//! routes, settings and commands go.
//!
//! Read is what is marked as code, between backticks and in fenced blocks. Prose is not judged. Each
//! list of what exists comes from a file that another test keeps true.

mod code_names;
mod commands;
mod routes;
mod settings;

pub(super) use code_names::check as check_code_names;
pub(super) use commands::check as check_commands;
pub(super) use routes::check as check_routes;
pub(super) use settings::check as check_settings;

use super::repository::Repository;

/// A piece of a document that is marked as code.
#[derive(Debug, PartialEq, Eq)]
struct Marked<'a> {
    /// Where it begins, counted from one.
    line: usize,
    text: &'a str,
    place: Marking<'a>,
}

/// How it is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marking<'a> {
    /// Between backticks.
    Inline,
    /// Between backticks in the program's own text.
    Message,
    /// A whole block; its language, empty when it names none.
    Block(&'a str),
}

/// The documents that describe the program as it is. The change log describes it as it was, and the
/// READMEs below `e2e` describe other programs.
fn current(repository: &Repository) -> impl Iterator<Item = (&str, &str)> {
    repository
        .documents()
        .filter(|(path, _)| *path != "CHANGELOG.md" && !path.starts_with("e2e/"))
}

/// Path and pieces of every document, and of the program's messages and comments.
fn with_messages(repository: &Repository) -> impl Iterator<Item = (&str, Vec<Marked<'_>>)> {
    let documents = current(repository).map(|(path, text)| (path, marked(text)));
    let sources = repository.rust_sources().filter(|(path, _)| {
        let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
        path.contains("/src/") && !path.starts_with("crates/xtask/") && !is_test
    });
    documents.chain(sources.map(|(path, text)| (path, marked_in_lines(text))))
}

/// Every piece between two backticks of one line.
fn marked_in_lines(source: &str) -> Vec<Marked<'_>> {
    let mut found = Vec::new();
    for (index, line) in source.lines().enumerate() {
        inline(line, index + 1, Marking::Message, &mut found);
    }
    found
}

/// Every piece of code in a document, in its order.
fn marked(text: &str) -> Vec<Marked<'_>> {
    let mut found = Vec::new();
    let mut paragraph: Option<(usize, usize)> = None;
    let mut block: Option<(usize, usize, &str)> = None;
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (start, end) = (at, at + line.len());
        at = end;
        let fence = line.trim_start().strip_prefix("```");
        let in_block = block.is_some();
        if (fence.is_some() || (!in_block && line.trim().is_empty()))
            && let Some((first, from)) = paragraph.take()
        {
            inline(&text[from..start], first, Marking::Inline, &mut found);
        }
        match (fence, block) {
            (Some(language), None) => {
                let language = language.split_whitespace().next().unwrap_or_default();
                block = Some((index + 2, end, language));
            }
            (Some(_), Some((first, from, language))) => {
                block = None;
                found.push(Marked {
                    line: first,
                    text: &text[from..start],
                    place: Marking::Block(language),
                });
            }
            (None, None) if !line.trim().is_empty() && paragraph.is_none() => {
                paragraph = Some((index + 1, start));
            }
            (None, _) => {}
        }
    }
    if let Some((first, from)) = paragraph {
        inline(&text[from..], first, Marking::Inline, &mut found);
    }
    found
}

/// The pieces between backticks of one paragraph, whose first line is `first`.
fn inline<'a>(paragraph: &'a str, first: usize, place: Marking<'a>, found: &mut Vec<Marked<'a>>) {
    let mut line = first;
    for (index, piece) in paragraph.split('`').enumerate() {
        if index % 2 == 1 {
            found.push(Marked {
                line,
                text: piece,
                place,
            });
        }
        line += piece.matches('\n').count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_between_backticks_and_in_blocks() {
        let text = "# A `b`\n\nText `c\nd` and `e`,\n```sh\nzareba ps\n```\nan odd ` here\n\n`f`\n";
        let piece = |line, text, place| Marked { line, text, place };
        assert_eq!(
            marked(text),
            [
                piece(1, "b", Marking::Inline),
                piece(3, "c\nd", Marking::Inline),
                piece(4, "e", Marking::Inline),
                piece(6, "zareba ps\n", Marking::Block("sh")),
                piece(8, " here\n", Marking::Inline),
                piece(10, "f", Marking::Inline),
            ]
        );
    }

    #[test]
    fn messages_of_the_program_are_read_and_those_of_tests_are_not() {
        let text = "//! A.\nhint(\"run `zareba ps`\");\n";
        let repository = Repository::of(&[
            ("crates/cli/src/a.rs", text),
            ("crates/cli/src/a_tests.rs", text),
            ("crates/cli/tests/it/a.rs", text),
        ]);
        let found: Vec<(&str, usize)> = with_messages(&repository)
            .flat_map(|(path, pieces)| pieces.into_iter().map(move |piece| (path, piece.line)))
            .collect();
        assert_eq!(found, [("crates/cli/src/a.rs", 2)]);
    }

    #[test]
    fn the_change_log_and_other_programs_are_not_current() {
        let repository = Repository::of(&[
            ("CHANGELOG.md", ""),
            ("docs/a.md", ""),
            ("e2e/foreign/README.md", ""),
        ]);
        let paths: Vec<&str> = current(&repository).map(|(path, _)| path).collect();
        assert_eq!(paths, ["docs/a.md"]);
    }
}
