//! Small pieces of Python's idea of text: newlines, white space, decoding errors.

use std::{borrow::Cow, str::Utf8Error};

/// Text with `\r\n` and lone `\r` turned into `\n`.
pub(crate) fn universal_newlines(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\r', text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What `str.strip` takes away: Unicode white space and the four ASCII separators.
pub(crate) fn python_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// The sentence of Python's `UnicodeDecodeError` for bytes that are not UTF-8.
pub(crate) fn undecodable(bytes: &[u8], error: Utf8Error) -> String {
    let position = error.valid_up_to();
    let byte = bytes.get(position).copied().unwrap_or_default();
    let why = match error.error_len() {
        None => "unexpected end of data",
        Some(_) if matches!(byte, 0x80..=0xc1 | 0xf5..=0xff) => "invalid start byte",
        Some(_) => "invalid continuation byte",
    };
    format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {position}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_newline_becomes_one() {
        let check = |text: &str, expected: &str| assert_eq!(universal_newlines(text), expected);
        check("a\nb", "a\nb");
        check("a\r\nb\r\n", "a\nb\n");
        check("a\rb\r\rc", "a\nb\n\nc");
        check("\r\n\r", "\n\n");
        check("é\r\nü", "é\nü");
    }

    #[test]
    fn decoding_errors_read_as_in_python() {
        let check = |bytes: &[u8], expected: &str| {
            let error = str::from_utf8(bytes).unwrap_err();
            assert_eq!(undecodable(bytes, error), expected);
        };
        check(
            b"ab\xff",
            "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
        );
        check(
            b"caf\xe9\n",
            "'utf-8' codec can't decode byte 0xe9 in position 3: invalid continuation byte",
        );
        check(
            b"caf\xc3",
            "'utf-8' codec can't decode byte 0xc3 in position 3: unexpected end of data",
        );
    }
}
