//! What Python's `json` module says of a text that it cannot read.
//!
//! Bodies are read by `serde_json`. Only when that fails is the text looked at here, because
//! clients of the original are told Python's words and the place where it stopped.

/// Deeper documents are refused; it is where `serde_json` stops too.
const DEPTH_MAX: usize = 127;

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// What Python says, and of which character.
    Decode {
        character: usize,
        message: &'static str,
    },
    /// Brackets in brackets, too many.
    TooDeep,
}

/// The first mistake in a text, if Python would find one.
pub(super) fn mistake(text: &str) -> Option<Mistake> {
    let scanner = Scanner {
        text: text.as_bytes(),
    };
    let stop = scanner.document().err()?;
    Some(match stop {
        Stop::TooDeep => Mistake::TooDeep,
        Stop::At(byte, message) => Mistake::Decode {
            character: count_characters(text, byte),
            message,
        },
    })
}

/// Whether a text that can be read has an integer of more than 64 bits. `serde_json` makes a
/// rounded number of it, where Python has the integer itself.
pub(super) fn has_large_integer(text: &str) -> bool {
    let scanner = Scanner {
        text: text.as_bytes(),
    };
    let mut at = 0;
    while let Some(byte) = scanner.byte(at) {
        let next = match byte {
            b'"' => scanner.string(at).ok(),
            b'-' | b'0'..=b'9' => scanner.number(at),
            _ => None,
        };
        let end = next.unwrap_or(at + 1);
        if byte != b'"' && text.get(at..end).is_some_and(is_large_integer) {
            return true;
        }
        at = end;
    }
    false
}

fn is_large_integer(literal: &str) -> bool {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer && literal.parse::<i64>().is_err() && literal.parse::<u64>().is_err()
}

/// Python counts characters, a byte of a character that is not begun yet belongs to the last one.
fn count_characters(text: &str, bytes: usize) -> usize {
    let before = text.char_indices().take_while(|(at, _)| *at < bytes);
    before.count()
}

enum Stop {
    At(usize, &'static str),
    TooDeep,
}

/// Each step takes the place where it begins and returns the place behind what it has read.
struct Scanner<'a> {
    text: &'a [u8],
}

const NO_VALUE: &str = "Expecting value";
const NO_NAME: &str = "Expecting property name enclosed in double quotes";
const NO_COLON: &str = "Expecting ':' delimiter";
const NO_COMMA: &str = "Expecting ',' delimiter";
const NO_END: &str = "Unterminated string starting at";
const BAD_ESCAPE: &str = "Invalid \\escape";
const BAD_UNICODE: &str = "Invalid \\uXXXX escape";
const CONTROL: &str = "Invalid control character at";
const EXTRA: &str = "Extra data";

impl Scanner<'_> {
    fn document(&self) -> Result<(), Stop> {
        let end = self.value(self.space(0), 0)?;
        let end = self.space(end);
        if end == self.text.len() {
            return Ok(());
        }
        Err(Stop::At(end, EXTRA))
    }

    fn space(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        at + rest.iter().take_while(is_space).count()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn value(&self, at: usize, depth: usize) -> Result<usize, Stop> {
        match self.byte(at) {
            Some(b'"') => self.string(at),
            Some(b'{') => self.object(at, deeper(depth)?),
            Some(b'[') => self.array(at, deeper(depth)?),
            _ => self
                .word(at)
                .or_else(|| self.number(at))
                .ok_or(Stop::At(at, NO_VALUE)),
        }
    }

    fn word(&self, at: usize) -> Option<usize> {
        let words = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];
        let rest = self.text.get(at..)?;
        let word = words
            .iter()
            .find(|word| rest.starts_with(word.as_bytes()))?;
        Some(at + word.len())
    }

    fn number(&self, start: usize) -> Option<usize> {
        let mut at = start + usize::from(self.byte(start) == Some(b'-'));
        at = match self.byte(at)? {
            b'0' => at + 1,
            b'1'..=b'9' => self.digits(at),
            _ => return None,
        };
        if self.byte(at) == Some(b'.') && self.digits(at + 1) > at + 1 {
            at = self.digits(at + 1);
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(at + 1), Some(b'+' | b'-')));
            let end = self.digits(at + 1 + sign);
            at = if end > at + 1 + sign { end } else { at };
        }
        Some(at)
    }

    fn digits(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn object(&self, at: usize, depth: usize) -> Result<usize, Stop> {
        let mut at = self.space(at + 1);
        if self.byte(at) == Some(b'}') {
            return Ok(at + 1);
        }
        loop {
            if self.byte(at) != Some(b'"') {
                return Err(Stop::At(at, NO_NAME));
            }
            at = self.space(self.string(at)?);
            if self.byte(at) != Some(b':') {
                return Err(Stop::At(at, NO_COLON));
            }
            at = self.space(self.value(self.space(at + 1), depth)?);
            match self.byte(at) {
                Some(b'}') => return Ok(at + 1),
                Some(b',') => at = self.space(at + 1),
                _ => return Err(Stop::At(at, NO_COMMA)),
            }
        }
    }

    fn array(&self, at: usize, depth: usize) -> Result<usize, Stop> {
        let mut at = self.space(at + 1);
        if self.byte(at) == Some(b']') {
            return Ok(at + 1);
        }
        loop {
            at = self.space(self.value(at, depth)?);
            match self.byte(at) {
                Some(b']') => return Ok(at + 1),
                Some(b',') => at = self.space(at + 1),
                _ => return Err(Stop::At(at, NO_COMMA)),
            }
        }
    }

    fn string(&self, begin: usize) -> Result<usize, Stop> {
        let mut at = begin + 1;
        loop {
            match self.byte(at) {
                None => return Err(Stop::At(begin, NO_END)),
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => at = self.escape(at, begin)?,
                Some(0..=0x1f) => return Err(Stop::At(at, CONTROL)),
                Some(_) => at += 1,
            }
        }
    }

    fn escape(&self, backslash: usize, begin: usize) -> Result<usize, Stop> {
        let letter = backslash + 1;
        match self.byte(letter) {
            None => Err(Stop::At(begin, NO_END)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(letter + 1),
            Some(b'u') => {
                // Python wants to see one more character behind the four digits.
                let digits = self.text.get(letter + 1..letter + 5).unwrap_or_default();
                let is_whole = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
                if !is_whole || self.byte(letter + 5).is_none() {
                    return Err(Stop::At(letter, BAD_UNICODE));
                }
                Ok(letter + 5)
            }
            Some(_) => Err(Stop::At(backslash, BAD_ESCAPE)),
        }
    }
}

fn deeper(depth: usize) -> Result<usize, Stop> {
    if depth < DEPTH_MAX {
        return Ok(depth + 1);
    }
    Err(Stop::TooDeep)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, and what Python 3.11 says of them.
    #[test]
    fn mistakes_are_told_in_the_words_of_python() {
        for (text, character, message) in [
            ("", 0, NO_VALUE),
            ("  ", 2, NO_VALUE),
            ("nope", 0, NO_VALUE),
            ("tru", 0, NO_VALUE),
            ("-", 0, NO_VALUE),
            ("-x", 0, NO_VALUE),
            ("[1,", 3, NO_VALUE),
            ("[1,]", 3, NO_VALUE),
            ("{\"a\":", 5, NO_VALUE),
            ("{", 1, NO_NAME),
            ("{,}", 1, NO_NAME),
            ("{a:1}", 1, NO_NAME),
            ("{1:2}", 1, NO_NAME),
            ("{\"a\":1,}", 7, NO_NAME),
            ("{\"a\"", 4, NO_COLON),
            ("{\"a\" 1}", 5, NO_COLON),
            ("[1 2]", 3, NO_COMMA),
            ("{\"a\":1", 6, NO_COMMA),
            ("{\"a\":1 \"b\"}", 7, NO_COMMA),
            ("\"abc", 0, NO_END),
            ("\"\\", 0, NO_END),
            ("\"\u{1}\"", 1, CONTROL),
            ("\"\\q\"", 1, BAD_ESCAPE),
            ("\"\\u12\"", 2, BAD_UNICODE),
            ("{\"x\":\"\\u12g4\"}", 7, BAD_UNICODE),
            ("\"\\u1234", 2, BAD_UNICODE),
            ("{\"x\":\"\\ud83d\\u12\"}", 13, BAD_UNICODE),
            ("{} x", 3, EXTRA),
            ("01", 1, EXTRA),
            ("1.", 1, EXTRA),
            ("1e", 1, EXTRA),
            ("NaN x", 4, EXTRA),
            ("\n\n {\"a\":1} \n[", 12, EXTRA),
            ("\"é\" x", 4, EXTRA),
        ] {
            let expected = Mistake::Decode { character, message };
            assert_eq!(mistake(text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn what_python_reads_has_no_mistake() {
        for text in [
            "{}",
            " [1, -0.5e+3, 1E9, \"\\u00e9\\n\", null, true, {\"a\": []}] ",
            "[NaN, Infinity, -Infinity]",
            "\"\\ud800 é\"",
        ] {
            assert_eq!(mistake(text), None, "{text:?}");
        }
    }

    #[test]
    fn integers_of_more_than_64_bits_are_found() {
        for text in [
            "123456789012345678901234567890",
            "[1, {\"a\": -9223372036854775809}]",
            "[\"x\\\"\", 18446744073709551616]",
        ] {
            assert!(has_large_integer(text), "{text}");
        }
        for text in [
            "[18446744073709551615, -9223372036854775808, 0, 1.5]",
            "[1e30, 123456789012345678901.0, \"123456789012345678901234567890\"]",
            "{\"123456789012345678901234567890\": null}",
        ] {
            assert!(!has_large_integer(text), "{text}");
        }
    }

    #[test]
    fn depth_has_a_limit() {
        assert_eq!(mistake(&"[".repeat(100_000)), Some(Mistake::TooDeep));
        let fits = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        assert_eq!(mistake(&fits), None);
    }
}
