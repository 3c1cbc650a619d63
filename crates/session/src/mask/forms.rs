//! The forms in which programs print a value.

use std::fmt::Write as _;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// The shortest form that is looked for. Of a value of four bytes the shortest has as many.
const FORM_BYTES_MIN: usize = 4;

/// A value as it is, and as Base64, hexadecimal digits, part of a URL and part of a JSON string.
pub(super) fn of(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![
        value.to_owned(),
        hexadecimal(value, HexCase::Lower),
        hexadecimal(value, HexCase::Upper),
        json(value),
        json_in_ascii(value),
    ];
    for case in [HexCase::Lower, HexCase::Upper] {
        let encoded = percent(value, case);
        forms.push(encoded.replace("%20", "+"));
        forms.push(encoded);
    }
    for before in 0..3 {
        forms.push(base64(&STANDARD_NO_PAD, before, value));
        forms.push(base64(&URL_SAFE_NO_PAD, before, value));
    }
    forms.retain(|form| form.len() >= FORM_BYTES_MIN);
    forms.into_iter().map(String::into_bytes).collect()
}

#[derive(Clone, Copy)]
enum HexCase {
    Lower,
    Upper,
}

/// Base64 of a text in which `before` bytes, counted modulo three, stand before the value: only
/// those letters that no neighbour has a part in.
fn base64(engine: &impl Engine, before: usize, value: &str) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let encoded = engine.encode(&bytes);
    let first = match before {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    let last = encoded.len() - usize::from(!bytes.len().is_multiple_of(3));
    encoded.get(first..last).unwrap_or_default().to_owned()
}

fn hexadecimal(value: &str, case: HexCase) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        push_hex(&mut text, byte, case);
        text
    })
}

/// As in a URL: all but letters, digits and `-._~` is escaped.
fn percent(value: &str, case: HexCase) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            push_hex(&mut text, byte, case);
        }
        text
    })
}

fn push_hex(text: &mut String, byte: u8, case: HexCase) {
    // Writing to a string cannot fail.
    let _ = match case {
        HexCase::Lower => write!(text, "{byte:02x}"),
        HexCase::Upper => write!(text, "{byte:02X}"),
    };
}

/// As within a JSON string.
fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

/// The same by a writer that escapes all that is not ASCII, as Python's does.
fn json_in_ascii(value: &str) -> String {
    json(value).chars().fold(String::new(), |mut text, letter| {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
        text
    })
}
