//! The diff in an `edit` observation: Python's `unified_diff` with no lines of context.

use std::ops::Range;

use super::matcher::{Change, changes};
use crate::files::python_space;

/// A diff larger than this helps nobody; what it leaves out is said at its end.
const DIFF_BYTES_MAX: usize = 1 << 20;

/// What changed between two texts, or nothing when they are equal.
///
/// Lines lose the white space at their end, as in the original.
pub(super) fn unified(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    of_lines(
        path,
        &old.split('\n').collect::<Vec<_>>(),
        &new.split('\n').collect::<Vec<_>>(),
    )
}

fn of_lines(path: &str, old: &[&str], new: &[&str]) -> String {
    let mut diff = Diff {
        text: format!("--- {path}\n+++ {path}"),
        left_out: 0,
    };
    for Change {
        old: removed,
        new: added,
    } in changes(old, new)
    {
        diff.push(&format!("@@ -{} +{} @@", span(&removed), span(&added)));
        for line in &old[removed] {
            diff.push(&format!("-{line}"));
        }
        for line in &new[added] {
            diff.push(&format!("+{line}"));
        }
    }
    diff.finish()
}

struct Diff {
    text: String,
    left_out: usize,
}

impl Diff {
    fn push(&mut self, line: &str) {
        if self.left_out > 0 || self.text.len() + line.len() > DIFF_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.text.push('\n');
        self.text.push_str(line.trim_end_matches(python_space));
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            // Tools that apply a diff skip lines that start with a backslash.
            self.text
                .push_str(&format!("\n\\ {} more lines are not shown", self.left_out));
        }
        self.text
    }
}

/// A range of lines as a hunk header names it: counted from 1, the length left out when it is
/// one, and the line before when it is empty.
fn span(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        length => format!("{},{length}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hunk_headers_have_every_form() {
        let check = |old: &str, new: &str, expected: &str| {
            let expected = format!("--- p\n+++ p\n{expected}");
            assert_eq!(unified("p", old, new), expected, "{old:?} -> {new:?}");
        };
        check("", "New", "@@ -1 +1 @@\n-\n+New");
        check("a\nb", "a\nx\nb", "@@ -1,0 +2 @@\n+x");
        check("a\n\nb", "a\nb", "@@ -2 +1,0 @@\n-");
        check("a\nb\nc", "x\ny\nc", "@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y");
        check("x", "x\n", "@@ -1,0 +2 @@\n+");
        check(
            "a\nb\nc\nd\ne",
            "a\nB\nc\nd\nE",
            "@@ -2 +2 @@\n-b\n+B\n@@ -5 +5 @@\n-e\n+E",
        );
        check("b", "a\nb", "@@ -0,0 +1 @@\n+a");
        check("a", "a  \t", "@@ -1 +1 @@\n-a\n+a");
    }

    /// Each case is two texts and the answer of Python's `difflib`; every character stands for
    /// a line.
    #[test]
    fn diffs_are_those_of_python() {
        let vectors = include_str!("../../tests/fixtures/difflib_vectors.json");
        let cases: Vec<[String; 3]> = serde_json::from_str(vectors).unwrap();
        assert_eq!(cases.len(), 135);
        for [old, new, expected] in cases {
            let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
            let (old, new): (Vec<String>, Vec<String>) = (
                old.iter().map(char::to_string).collect(),
                new.iter().map(char::to_string).collect(),
            );
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let diff = if old == new {
                String::new()
            } else {
                of_lines("p", &old, &new)
            };
            assert_eq!(diff, expected, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("p", "a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn a_huge_diff_is_cut_and_says_so() {
        let new = "line\n".repeat(400_000);
        let diff = unified("p", "", &new);
        assert!(diff.len() < DIFF_BYTES_MAX + 100);
        assert!(
            diff.ends_with("more lines are not shown"),
            "{}",
            &diff[diff.len() - 80..]
        );
    }

    /// Applies a diff without context, which needs nothing but the hunk headers.
    fn apply(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.split('\n').collect();
        let mut new: Vec<&str> = Vec::new();
        let mut at = 0;
        for line in diff.split('\n').skip(2) {
            if let Some(header) = line.strip_prefix("@@ -") {
                let removed = header.split(' ').next().unwrap();
                let (start, length) = removed.split_once(',').unwrap_or((removed, "1"));
                let start: usize = start.parse().unwrap();
                let until = if length == "0" { start } else { start - 1 };
                new.extend(&old[at..until]);
                at = until;
            } else if let Some(added) = line.strip_prefix('+') {
                new.push(added);
            } else {
                assert_eq!(line.strip_prefix('-'), Some(old[at]));
                at += 1;
            }
        }
        new.extend(&old[at..]);
        new.join("\n")
    }

    proptest! {
        #[test]
        fn applying_the_diff_gives_the_new_text(
            old in proptest::collection::vec("[abc@+-]{0,2}", 0..30),
            new in proptest::collection::vec("[abc@+-]{0,2}", 0..30),
        ) {
            let (old, new) = (old.join("\n"), new.join("\n"));
            let diff = unified("p", &old, &new);
            prop_assert_eq!(apply(&old, &diff), new);
        }
    }
}
