//! JSON values as Python would print them.
//!
//! Error texts and messages of the wire contract show values the way the original's language
//! does, and clients compare those texts.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Deeper values are shown as `...`; a decoded document never gets there.
const DEPTH_MAX: usize = 128;

/// The value as Python's `repr` shows it.
pub fn of(value: &Value) -> String {
    let mut text = String::new();
    push_value(&mut text, value, 0);
    text
}

/// The object as Python's `repr` shows a `dict`.
pub fn of_object(object: &Map<String, Value>) -> String {
    let mut text = String::new();
    push_object(&mut text, object, 0);
    text
}

/// The string as Python's `repr` shows it: single quotes unless only double ones avoid escapes.
pub fn of_str(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    push_str(&mut text, string);
    text
}

/// The number as Python shows a `float`: `120.0`, `0.5`, `1e-07`, `inf`.
pub fn of_float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // `{:e}` gives the shortest digits that read back as the same number, as Python does.
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{number:?}"),
    }
}

fn push_value(text: &mut String, value: &Value, depth: usize) {
    if depth > DEPTH_MAX {
        text.push_str("...");
        return;
    }
    match value {
        Value::Null => text.push_str("None"),
        Value::Bool(true) => text.push_str("True"),
        Value::Bool(false) => text.push_str("False"),
        Value::Number(number) => push_number(text, number),
        Value::String(string) => push_str(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                push_value(text, item, depth + 1);
            }
            text.push(']');
        }
        Value::Object(object) => push_object(text, object, depth),
    }
}

fn push_object(text: &mut String, object: &Map<String, Value>, depth: usize) {
    text.push('{');
    for (index, (key, value)) in object.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        push_str(text, key);
        text.push_str(": ");
        push_value(text, value, depth + 1);
    }
    text.push('}');
}

fn push_number(text: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => text.push_str(&of_float(float)),
        // Writing to a string cannot fail.
        _ => drop(write!(text, "{number}")),
    }
}

fn push_str(text: &mut String, string: &str) {
    let quote = if string.contains('\'') && !string.contains('"') {
        '"'
    } else {
        '\''
    };
    text.push(quote);
    for character in string.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if character == quote => text.extend(['\\', quote]),
            ' '..='~' => text.push(character),
            _ if is_printable(character) => text.push(character),
            _ => push_escape(text, u32::from(character)),
        }
    }
    text.push(quote);
}

fn push_escape(text: &mut String, code: u32) {
    // Writing to a string cannot fail.
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// Python and Rust call the same Unicode categories unprintable. A character in second place is
/// asked for, because in first place Rust escapes combining marks too.
fn is_printable(character: char) -> bool {
    let pair: String = ['a', character].iter().collect();
    pair.escape_debug().eq(pair.chars())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_python_shows_them() {
        let value =
            json!({"a": [1, -2, 1.5, true, false, null], "b": {}, "c": [], "d": {"e": "f"}});
        assert_eq!(
            of(&value),
            "{'a': [1, -2, 1.5, True, False, None], 'b': {}, 'c': [], 'd': {'e': 'f'}}"
        );
    }

    #[test]
    fn strings_follow_the_quoting_rules_of_python() {
        let cases = [
            ("", "''"),
            ("it's", "\"it's\""),
            ("say \"hi\"", "'say \"hi\"'"),
            ("it's \"hi\"", "'it\\'s \"hi\"'"),
            ("a\\b\n\r\t", "'a\\\\b\\n\\r\\t'"),
            ("\0\x1b\x7f", "'\\x00\\x1b\\x7f'"),
            ("é世🙂", "'é世🙂'"),
            ("e\u{301}", "'e\u{301}'"),
            (
                "\u{a0}\u{ad}\u{200b}\u{2028}\u{e000}\u{e0001}",
                "'\\xa0\\xad\\u200b\\u2028\\ue000\\U000e0001'",
            ),
        ];
        for (string, expected) in cases {
            assert_eq!(of_str(string), expected);
        }
    }

    #[test]
    fn floats_switch_to_exponents_where_python_does() {
        let cases = [
            (120.0, "120.0"),
            (2.5, "2.5"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.234e22, "1.234e+22"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (number, expected) in cases {
            assert_eq!(of_float(number), expected);
        }
    }
}
