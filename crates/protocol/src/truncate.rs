//! Cutting the middle out of output that is too long for an agent to read.

use std::borrow::Cow;

/// How many characters of a command's output reach the agent.
pub const OUTPUT_CHARS_MAX: usize = 30_000;

/// What stands where the middle was.
pub const TRUNCATION_MARKER: &str = "\n[... Observation truncated due to length ...]\n";

/// Keeps the first and the last half of [`OUTPUT_CHARS_MAX`] characters around
/// [`TRUNCATION_MARKER`], or all of a shorter text.
///
/// Characters are Unicode code points. Cutting a text that was cut changes nothing, so both
/// ends of a connection may do it.
pub fn truncate_middle(text: &str) -> Cow<'_, str> {
    const HALF: usize = OUTPUT_CHARS_MAX / 2;
    // A text has at least as many bytes as characters, so most texts are decided here.
    if text.len() <= OUTPUT_CHARS_MAX || text.chars().nth(OUTPUT_CHARS_MAX).is_none() {
        return Cow::Borrowed(text);
    }
    let head = text
        .char_indices()
        .nth(HALF)
        .map_or(text.len(), |(index, _)| index);
    let tail = text
        .char_indices()
        .nth_back(HALF - 1)
        .map_or(0, |(index, _)| index);
    Cow::Owned([&text[..head], TRUNCATION_MARKER, &text[tail..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_at_the_limit_is_kept_whole() {
        let text = "é".repeat(OUTPUT_CHARS_MAX);
        assert!(matches!(truncate_middle(&text), Cow::Borrowed(kept) if kept == text));
    }

    #[test]
    fn a_longer_text_keeps_both_ends_counted_in_characters() {
        let text = format!("{}x{}", "é".repeat(15_000), "世".repeat(15_000));
        let cut = truncate_middle(&text);
        let expected = format!(
            "{}{TRUNCATION_MARKER}{}",
            "é".repeat(15_000),
            "世".repeat(15_000)
        );
        assert_eq!(cut, expected);
        assert_eq!(cut.chars().count(), 30_047);
    }

    #[test]
    fn cutting_twice_is_cutting_once() {
        let text = "0123456789\n".repeat(10_000);
        let once = truncate_middle(&text).into_owned();
        assert_eq!(truncate_middle(&once), once);
    }
}
