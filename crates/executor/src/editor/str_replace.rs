//! Where `str_replace` works: the one place at which the old text stands.

use std::ops::Range;

use super::refusal::Refusal;
use crate::files::python_space;

/// What `str_replace` will do to a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) range: Range<usize>,
    pub(super) with: String,
    /// The line in which the replaced part starts, counted from 1.
    pub(super) line: usize,
}

/// Finds the one occurrence of `old`, or of `old` without the white space around it; then
/// `new` loses its own too.
pub(super) fn plan(path: &str, text: &str, old: &str, new: &str) -> Result<Replacement, Refusal> {
    if let Some(replacement) = find_one(text, old, new)? {
        return Ok(replacement);
    }
    let (old, new) = (
        old.trim_matches(python_space),
        new.trim_matches(python_space),
    );
    find_one(text, old, new)?.ok_or_else(|| Refusal::NotFound {
        old: old.to_owned(),
        path: path.to_owned(),
    })
}

fn find_one(text: &str, old: &str, new: &str) -> Result<Option<Replacement>, Refusal> {
    let mut places = text.match_indices(old).map(|(place, _)| place);
    let Some(first) = places.next() else {
        return Ok(None);
    };
    let Some(second) = places.next() else {
        return Ok(Some(Replacement {
            range: first..first + old.len(),
            with: new.to_owned(),
            line: newlines(&text[..first]) + 1,
        }));
    };
    let mut lines: Vec<usize> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for place in [first, second].into_iter().chain(places) {
        line += newlines(&text[counted..place]);
        counted = place;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    Err(Refusal::SeveralFound {
        old: old.to_owned(),
        lines,
    })
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_occurrence_is_replaced_where_it_stands() {
        assert_eq!(
            plan("/f", "a\nb\nc", "b\n", "x"),
            Ok(Replacement {
                range: 2..4,
                with: "x".to_owned(),
                line: 2
            })
        );
    }

    #[test]
    fn white_space_around_the_texts_is_forgiven() {
        assert_eq!(
            plan("/f", "one two", "  two\n", "\n three \x1c"),
            Ok(Replacement {
                range: 4..7,
                with: "three".to_owned(),
                line: 1
            })
        );
        assert_eq!(
            plan("/f", "one", " two ", "x"),
            Err(Refusal::NotFound {
                old: "two".to_owned(),
                path: "/f".to_owned()
            })
        );
    }

    #[test]
    fn several_occurrences_are_refused_with_their_lines() {
        let check = |text: &str, old: &str, lines: &[usize]| {
            assert_eq!(
                plan("/f", text, old, "x"),
                Err(Refusal::SeveralFound {
                    old: old.to_owned(),
                    lines: lines.to_owned()
                })
            );
        };
        check("test test\ntest", "test", &[1, 2]);
        check("a\nb\nc\n", "", &[1, 2, 3, 4]);
        check("aaaa", "aa", &[1]);
        check("x\n\nx\n", "x\n", &[1, 3]);
    }

    #[test]
    fn overlapping_occurrences_count_once() {
        assert_eq!(
            plan("/f", "aaa", "aa", "x"),
            Ok(Replacement {
                range: 0..2,
                with: "x".to_owned(),
                line: 1
            })
        );
    }

    #[test]
    fn an_empty_text_has_one_place_for_the_empty_string() {
        assert_eq!(
            plan("/f", "", "", "x"),
            Ok(Replacement {
                range: 0..0,
                with: "x".to_owned(),
                line: 1
            })
        );
    }

    #[test]
    fn a_million_places_are_not_all_listed() {
        let refusal = plan("/f", &"\n".repeat(5000), "", "x")
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains(", 999, 1000, ... (5001 lines)]. Please"),
            "{refusal}"
        );
    }

    proptest! {
        #[test]
        fn a_unique_text_is_replaced_and_nothing_else_changes(
            before in "[ab\n]{0,30}", old in "[xyz]{1,5}", after in "[ab\n]{0,30}", new in "[cd\n]{0,5}",
        ) {
            let text = format!("{before}{old}{after}");
            let replacement = plan("/f", &text, &old, &new).unwrap();
            let mut result = text.clone();
            result.replace_range(replacement.range, &replacement.with);
            prop_assert_eq!(result, format!("{before}{new}{after}"));
            prop_assert_eq!(replacement.line, before.matches('\n').count() + 1);
        }
    }
}
