//! A text file in memory: what an agent sees of it, and how that becomes bytes again.
//!
//! The agent sees lines that end in `\n`. The bytes keep their encoding, their byte order mark
//! and every line ending outside the edited part.

use std::ops::Range;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::files::{detect_legacy, undecodable, universal_newlines};

/// How much of a file the encoding is guessed from.
const GUESSED_BYTES_MAX: usize = 1 << 20;

/// A file's text with all that is needed to write it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// The text with every newline as `\n`.
    pub(super) text: String,
    /// The text with its own newlines; absent when they are all `\n`.
    raw: Option<String>,
    codec: Codec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Utf8 {
        marked: bool,
    },
    Utf16 {
        big_endian: bool,
    },
    /// An encoding of the time before Unicode.
    Legacy(&'static Encoding),
}

/// Why a text cannot be had from bytes or turned into them, in Python's words.
pub(super) type CodecError = String;

impl Document {
    /// Decodes a file, UTF-8 first.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let (codec, decoded) = decode(bytes)?;
        Ok(Self::new(decoded, codec))
    }

    /// The bytes of this text; fails rather than to lose a character.
    pub(super) fn encode(&self) -> Result<Vec<u8>, CodecError> {
        encode(self.raw.as_ref().unwrap_or(&self.text), self.codec)
    }

    /// Whether text that comes from an agent must lose its `\r` to match or to fit in.
    pub(super) fn has_windows_newlines(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| raw.contains("\r\n"))
    }

    /// A text with a part replaced; `range` and `with` are in terms of [`Document::text`].
    pub(super) fn spliced(&self, range: Range<usize>, with: &str) -> Self {
        let text = [&self.text[..range.start], with, &self.text[range.end..]].concat();
        let Some(raw) = &self.raw else {
            return Self {
                text,
                raw: None,
                codec: self.codec,
            };
        };
        let newline = usual_newline(raw);
        let (start, end) = (raw_offset(raw, range.start), raw_offset(raw, range.end));
        let raw = [&raw[..start], &with.replace('\n', newline), &raw[end..]].concat();
        if universal_newlines(&raw) == text {
            return Self {
                text,
                raw: Some(raw),
                codec: self.codec,
            };
        }
        // A lone `\r` met a `\n` at the seam and they became one newline: make all alike.
        let raw = text.replace('\n', newline);
        Self {
            text,
            raw: Some(raw),
            codec: self.codec,
        }
    }

    fn new(decoded: String, codec: Codec) -> Self {
        match universal_newlines(&decoded) {
            std::borrow::Cow::Borrowed(_) => Self {
                text: decoded,
                raw: None,
                codec,
            },
            std::borrow::Cow::Owned(text) => Self {
                text,
                raw: Some(decoded),
                codec,
            },
        }
    }
}

fn decode(bytes: &[u8]) -> Result<(Codec, String), CodecError> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf")
        && let Ok(text) = str::from_utf8(rest)
    {
        return Ok((Codec::Utf8 { marked: true }, text.to_owned()));
    }
    let utf16 = |encoding: &'static Encoding, rest: &[u8], big_endian| {
        encoding
            .decode_without_bom_handling_and_without_replacement(rest)
            .map(|text| (Codec::Utf16 { big_endian }, text.into_owned()))
            .ok_or_else(|| "'utf-16' codec can't decode the file: illegal encoding".to_owned())
    };
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(UTF_16LE, rest, false);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(UTF_16BE, rest, true);
    }
    let error = match str::from_utf8(bytes) {
        Ok(text) => return Ok((Codec::Utf8 { marked: false }, text.to_owned())),
        Err(error) => error,
    };
    let sample = &bytes[..bytes.len().min(GUESSED_BYTES_MAX)];
    detect_legacy(sample, sample.len() == bytes.len())
        .and_then(|encoding| {
            let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
            Some((Codec::Legacy(encoding), text.into_owned()))
        })
        // Some encodings have two codes for one character; a rewrite would change the file.
        .filter(|(codec, text)| encode(text, *codec).is_ok_and(|again| again == bytes))
        .ok_or_else(|| undecodable(bytes, error))
}

fn encode(text: &str, codec: Codec) -> Result<Vec<u8>, CodecError> {
    Ok(match codec {
        Codec::Utf8 { marked: false } => text.as_bytes().to_owned(),
        Codec::Utf8 { marked: true } => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        Codec::Utf16 { big_endian } => {
            let bytes = |unit: u16| {
                if big_endian {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            };
            std::iter::once(0xfeff)
                .chain(text.encode_utf16())
                .flat_map(bytes)
                .collect()
        }
        Codec::Legacy(encoding) => {
            let (bytes, used, lossy) = encoding.encode(text);
            if lossy || used == UTF_8 {
                return Err(unencodable(text, encoding));
            }
            bytes.into_owned()
        }
    })
}

fn unencodable(text: &str, encoding: &'static Encoding) -> CodecError {
    let mut buffer = [0; 4];
    let first = text.chars().enumerate().find(|(_, character)| {
        let (_, _, lossy) = encoding.encode(character.encode_utf8(&mut buffer));
        lossy
    });
    let name = encoding.name().to_ascii_lowercase();
    match first {
        Some((position, character)) => format!(
            "'{name}' codec can't encode character '\\u{:04x}' in position {position}: character maps to <undefined>",
            u32::from(character)
        ),
        None => format!("'{name}' codec can't encode the text"),
    }
}

/// Where a position of the text with `\n` alone lies in the text with its own newlines.
fn raw_offset(raw: &str, offset: usize) -> usize {
    // Of each `\r\n` one byte is missing in the other text.
    let shorter_before = memchr::memmem::find_iter(raw.as_bytes(), "\r\n")
        .enumerate()
        .take_while(|(before, at)| at - before < offset)
        .count();
    offset + shorter_before
}

fn usual_newline(raw: &str) -> &'static str {
    let windows = memchr::memmem::find_iter(raw.as_bytes(), "\r\n").count();
    let unix = memchr::memchr_iter(b'\n', raw.as_bytes()).count() - windows;
    let mac = memchr::memchr_iter(b'\r', raw.as_bytes()).count() - windows;
    if windows >= unix && windows >= mac {
        "\r\n"
    } else if unix >= mac {
        "\n"
    } else {
        "\r"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encodings_are_told_apart_and_written_back() {
        let check = |bytes: &[u8], expected: &str| {
            let document = Document::decode(bytes).unwrap();
            assert_eq!(document.text, expected);
            assert_eq!(document.encode().unwrap(), bytes);
        };
        check("naïve 日本\n".as_bytes(), "naïve 日本\n");
        check(b"\xef\xbb\xbfmarked\n", "marked\n");
        check(b"\xff\xfeh\0i\0", "hi");
        check(b"\xfe\xff\0h\0i", "hi");
        check(b"caf\xe9 cr\xe8me br\xfbl\xe9e\n", "café crème brûlée\n");
        let (russian, _, _) = encoding_rs::WINDOWS_1251.encode("Это русский текст, привет\n");
        check(&russian, "Это русский текст, привет\n");
        let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("これは日本語のテキストです。\n");
        check(&japanese, "これは日本語のテキストです。\n");
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_an_error() {
        let document = Document::decode(b"caf\xe9 cr\xe8me\n").unwrap();
        assert_eq!(
            document.spliced(0..0, "漢").encode(),
            Err("'windows-1252' codec can't encode character '\\u6f22' in position 0: character maps to <undefined>".to_owned())
        );
    }

    #[test]
    fn newlines_outside_of_the_edited_part_stay_as_they_are() {
        let check = |raw: &str, range: Range<usize>, with: &str, expected: &str| {
            let document = Document::decode(raw.as_bytes())
                .unwrap()
                .spliced(range, with);
            assert_eq!(document.encode().unwrap(), expected.as_bytes(), "{raw:?}");
            assert_eq!(document.text, universal_newlines(expected));
        };
        check("a\r\nb\r\nc\r\n", 2..3, "x\ny", "a\r\nx\r\ny\r\nc\r\n");
        check("a\r\nb\r\n", 1..2, "", "ab\r\n");
        check("a\r\nb\nc\r\n", 0..1, "A\nB", "A\r\nB\r\nb\nc\r\n");
        check("a\nb\n", 2..3, "x", "a\nx\n");
        check("a\rb\rc", 2..3, "x\ny", "a\rx\ry\rc");
        check("a\rb\nc\nd\n", 2..3, "\n", "a\n\n\nc\nd\n");
    }

    proptest! {
        #[test]
        fn a_splice_does_to_the_text_what_it_says(
            raw in "([ab]|\r\n|\n|\r){0,20}",
            with in "([xy]|\n){0,5}",
            cut in (0.0_f64..1.0, 0.0_f64..1.0),
        ) {
            let document = Document::decode(raw.as_bytes()).unwrap();
            let length = document.text.len() as f64;
            let (one, two) = ((cut.0 * length) as usize, (cut.1 * length) as usize);
            let range = one.min(two)..one.max(two);
            let mut expected = document.text.clone();
            expected.replace_range(range.clone(), &with);
            let spliced = document.spliced(range, &with);
            let again = Document::decode(&spliced.encode().unwrap()).unwrap();
            prop_assert_eq!(&spliced.text, &expected);
            prop_assert_eq!(&again.text, &expected);
        }
    }
}
