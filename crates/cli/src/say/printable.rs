//! Text of others without what a terminal would obey.
//!
//! Names, errors and logs of sandboxes, tool servers and containers are written by whoever is in
//! there. A terminal takes some characters of them for orders (to move the cursor, to change what
//! was typed), and some only change the order in which the others are shown. They are made visible
//! and nothing is left out. What a program of the user's writes on purpose is not touched by this:
//! `run`, `exec` and shells pass it on as it is.

use std::borrow::Cow;

/// A text that may have several lines: their ends and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| {
        !matches!(letter, '\n' | '\t') && is_order(letter)
    })
}

/// A text that must be one line, such as a cell of a table.
pub(crate) fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_order)
}

fn escaped(text: &str, is_unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_unfit(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Whether a character orders instead of showing something: control characters, the ends of lines
/// and paragraphs of Unicode, and whatever changes the direction of the text behind it.
fn is_order(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        let text = "\u{1b}]0;title\u{7} \u{9b}2J café\t日本\r\nend\u{7f}";
        let lines = "\\u{1b}]0;title\\u{7} \\u{9b}2J café\t日本\\r\nend\\u{7f}";
        assert_eq!(printable(text), lines);
        let line = "\\u{1b}]0;title\\u{7} \\u{9b}2J café\\t日本\\r\\nend\\u{7f}";
        assert_eq!(printable_line(text), line);
    }

    #[test]
    fn text_cannot_be_shown_in_another_order_than_it_has() {
        for order in [
            '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}',
            '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
        ] {
            let text = format!("a{order}b");
            let shown = format!("a\\u{{{:x}}}b", u32::from(order));
            assert_eq!(printable(&text), shown);
            assert_eq!(printable_line(&text), shown);
        }
    }

    #[test]
    fn what_only_shows_something_stays() {
        for text in ["", "plain", "שלום", "👩‍💻", "a\u{a0}b"] {
            assert!(matches!(printable_line(text), Cow::Borrowed(shown) if shown == text));
        }
    }
}
