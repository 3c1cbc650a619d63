//! Telling text from other files by their first bytes.
//!
//! The shares and the rule are the contract's. Its encoding detector is replaced by one rule
//! that does not call a Chinese or Russian text binary: what decodes without an error and
//! without control characters, in UTF-8 or in the encoding that it looks like, is text.

use std::path::Path;

use encoding_rs::{Encoding, UTF_8};

/// How many of a file's bytes are looked at.
pub(crate) const SAMPLE_BYTES: usize = 1024;

/// How many characters of several bytes make UTF-8 certain even beside a NUL.
const CERTAIN_CHARACTERS: usize = 4;

/// Whether a file of this name that starts like this is not text.
pub(crate) fn is_binary(path: &Path, content: &[u8]) -> bool {
    if path.as_os_str().as_encoded_bytes().ends_with(b".pyc") {
        return true;
    }
    let (sample, is_whole) = match content.get(..SAMPLE_BYTES) {
        Some(sample) => (sample, content.len() == SAMPLE_BYTES),
        None => (content, true),
    };
    if sample.is_empty() || surely_text(sample, is_whole) {
        return false;
    }
    let share = |wanted: fn(u8) -> bool| {
        sample.iter().filter(|byte| wanted(**byte)).count() as f64 / sample.len() as f64
    };
    let unprintable = share(|byte| !is_printable(byte));
    let low = share(|byte| byte < 0x7f);
    let likely = (unprintable > 0.3 && low < 0.05) || (unprintable > 0.8 && low > 0.8);
    likely || sample.contains(&0x00) || sample.contains(&0xff)
}

/// The encoding of text that is not UTF-8, as far as it can be told; `None` when it decodes in
/// nothing plausible.
pub(crate) fn detect_legacy(sample: &[u8], is_whole: bool) -> Option<&'static Encoding> {
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(sample, is_whole);
    let encoding = detector.guess(None, chardetng::Utf8Detection::Deny);
    (encoding != UTF_8).then_some(encoding)
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\t' | 0x0c | 0x08 | 0x20..=0x7e)
}

fn surely_text(sample: &[u8], is_whole: bool) -> bool {
    // The mark of UTF-32 starts like that of UTF-16; what it marks cannot be edited here.
    if sample.starts_with(b"\xff\xfe\0\0") {
        return false;
    }
    if let Some((encoding, mark)) = Encoding::for_bom(sample) {
        // A cut at an odd place would break the last character.
        let end = if encoding == UTF_8 {
            sample.len()
        } else {
            sample.len() & !1
        };
        return encoding == UTF_8 || decodes_to_text(encoding, &sample[mark..end], is_whole);
    }
    match str::from_utf8(sample) {
        Ok(text) => is_text_in_utf8(text),
        Err(error) if error.error_len().is_none() && !is_whole => {
            str::from_utf8(&sample[..error.valid_up_to()]).is_ok_and(is_text_in_utf8)
        }
        Err(_) => detect_legacy(sample, is_whole)
            .is_some_and(|encoding| decodes_to_text(encoding, sample, is_whole)),
    }
}

fn is_text_in_utf8(text: &str) -> bool {
    let wide = text
        .chars()
        .filter(|character| !character.is_ascii())
        .count();
    wide >= CERTAIN_CHARACTERS || (wide > 0 && !text.contains('\0'))
}

fn decodes_to_text(encoding: &'static Encoding, sample: &[u8], is_whole: bool) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let Some(capacity) = decoder.max_utf8_buffer_length_without_replacement(sample.len()) else {
        return false;
    };
    let mut text = String::with_capacity(capacity);
    let (result, _) = decoder.decode_to_string_without_replacement(sample, &mut text, is_whole);
    result == encoding_rs::DecoderResult::InputEmpty
        && text.chars().all(|character| {
            !character.is_control() || matches!(character, '\n' | '\r' | '\t' | '\x0c' | '\x08')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, content: &[u8], expected: bool) {
        assert_eq!(
            is_binary(Path::new(name), content),
            expected,
            "{name} {content:02x?}"
        );
    }

    #[test]
    fn text_in_any_usual_encoding_is_text() {
        check("a", b"", false);
        check("a", b"plain ascii\n", false);
        check("a", "日本".as_bytes(), false);
        check("a", "漢字かな".repeat(200).as_bytes(), false);
        check("a", b"caf\xe9\n", false);
        check("a", b"\xef\xbb\xbfmarked", false);
        check("a", b"\xff\xfeh\0i\0\n\0", false);
        let (russian, _, _) = encoding_rs::WINDOWS_1251.encode("Моя земля, моя семья и яблоня\n");
        assert!(russian.contains(&0xff));
        check("a", &russian, false);
        let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("これは日本語のテキストです。\n");
        check("a", &japanese, false);
    }

    #[test]
    fn what_is_not_text_is_binary() {
        check("module.pyc", b"text", true);
        check("a", b"a\0b", true);
        check("a", b"plain text and \xff \x01", true);
        check("a", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", true);
        check("a", b"\x7fELF\x02\x01\x01\0\0\0", true);
        check("a", b"\xff\xfe\0\0h\0\0\0", true);
        check("a", &[0x01; 50], true);
        check("a", &[&[0x81; 99][..], b"\x01"].concat(), true);
    }

    #[test]
    fn control_characters_alone_make_a_file_binary_only_when_they_are_most_of_it() {
        check("a", b"\x01\x02abcdefgh", false);
        check("a", b"\x01\x02\x03\x04\x05\x06\x07\x0e\x0fa", true);
    }
}
