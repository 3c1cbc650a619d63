//! Numbered listings, and how long ones are cut.

use std::{borrow::Cow, fmt::Write};

/// How many characters of a file or directory are shown.
const SHOWN_CHARACTERS_MAX: usize = 16_000;

/// What follows a file that was cut.
pub(super) const FILE_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

/// What follows a converted document that was cut.
pub(super) const DOCUMENT_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. Please use Python libraries to view the entire file or search for specific content within the file.</NOTE>";

/// What follows a directory that was cut.
pub(super) const DIRECTORY_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>";

/// `text` with line numbers, as `cat -n` prints it, under the sentence that says what it is.
pub(super) fn numbered(text: &str, what: &str, first_line: usize) -> String {
    let text = clip(text, FILE_CLIPPED);
    let mut out = format!("Here's the result of running `cat -n` on {what}:\n");
    for (index, line) in text.split('\n').enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:6}\t{line}", first_line + index);
    }
    out
}

/// The first characters of a long text, followed by a notice.
pub(super) fn clip<'a>(text: &'a str, notice: &str) -> Cow<'a, str> {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}{notice}", &text[..end])),
    }
}

/// Lines `first` to `last`, counted from 1, with their newlines; what lies outside is left out.
pub(super) fn lines_between(text: &str, first: usize, last: usize) -> String {
    text.split_inclusive('\n')
        .skip(first.saturating_sub(1))
        .take((last + 1).saturating_sub(first.max(1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_at_the_end_shows_one_more_line() {
        let head = "Here's the result of running `cat -n` on /f:\n";
        assert_eq!(
            numbered("a\n\tb\n", "/f", 9),
            format!("{head}     9\ta\n    10\t\tb\n    11\t\n")
        );
        assert_eq!(numbered("", "/f", 1), format!("{head}     1\t\n"));
    }

    #[test]
    fn sixteen_thousand_characters_are_whole_and_one_more_is_cut() {
        let whole = "é".repeat(16_000);
        assert_eq!(clip(&whole, "!"), whole);
        assert_eq!(clip(&format!("{whole}x"), "!"), format!("{whole}!"));
        let listing = numbered(&format!("{whole}xyz"), "/f", 1);
        assert!(listing.ends_with(&format!("     1\t{whole}{FILE_CLIPPED}\n")));
    }

    #[test]
    fn lines_between_are_inclusive() {
        let check = |first, last, expected: &str| {
            assert_eq!(
                lines_between("1\n2\n3\n4", first, last),
                expected,
                "{first} {last}"
            );
        };
        check(1, 2, "1\n2\n");
        check(2, 9, "2\n3\n4");
        check(4, 4, "4");
        check(5, 9, "");
        check(3, 2, "");
    }
}
