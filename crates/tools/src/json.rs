//! JSON as Python writes it: with `NaN` and `Infinity`, which strict JSON does not have.

use serde_json::Value;

/// Reads JSON of Python's kind. What is no number becomes null, and what is no JSON at all stays
/// the text that it is.
pub(crate) fn lenient(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    serde_json::from_str(&without_odd_numbers(text))
        .unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// How deep arrays and objects nest, as far as brackets outside of texts tell.
pub(crate) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    outside_of_texts(text, |byte| match byte {
        b'[' | b'{' => {
            depth += 1;
            deepest = deepest.max(depth);
        }
        b']' | b'}' => depth = depth.saturating_sub(1),
        _ => {}
    });
    deepest
}

fn outside_of_texts(text: &str, mut see: impl FnMut(u8)) {
    let (mut in_text, mut escaped) = (false, false);
    for byte in text.bytes() {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_text = false,
            (true, _) => {}
            (false, b'"') => in_text = true,
            (false, byte) => see(byte),
        }
    }
}

/// Python's names for what is no number, the longest first.
const ODD_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

fn without_odd_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let (mut in_text, mut escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        if !in_text && let Some(odd) = ODD_NUMBERS.iter().find(|odd| rest.starts_with(**odd)) {
            plain.push_str("null");
            rest = rest.get(odd.len()..).unwrap_or_default();
            continue;
        }
        match (in_text, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_text = !in_text,
            _ => {}
        }
        plain.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_number_is_null_and_texts_stay() {
        for (text, value) in [
            (
                r#"[NaN, -Infinity, Infinity, 1]"#,
                json!([null, null, null, 1]),
            ),
            (
                r#"{"NaN": "NaN \" NaN", "b": NaN}"#,
                json!({"NaN": "NaN \" NaN", "b": null}),
            ),
            ("3", json!(3)),
            ("not json", json!("not json")),
        ] {
            assert_eq!(lenient(text), value, "{text}");
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        for (text, deep) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": ["[[["]}"#, 2),
            (r#""\"[[""#, 0),
        ] {
            assert_eq!(depth(text), deep, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}") {
            let _ = (lenient(&text), depth(&text));
        }
    }
}
