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

/// What can be told of JSON without reading it into memory, where a few bytes of it become many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonShape {
    /// How deep arrays and objects nest, as far as brackets outside of texts tell.
    pub depth: usize,
    /// How many values there are, and names of members: no fewer than reading it makes.
    pub values: usize,
}

impl JsonShape {
    /// Looks at bytes that should be JSON. What is none has a shape as well.
    pub fn of(json: &[u8]) -> Self {
        let mut shape = Self {
            depth: 0,
            values: 1,
        };
        let mut depth = 0_usize;
        outside_of_texts(json, |byte| match byte {
            b'[' | b'{' => {
                depth += 1;
                shape.depth = shape.depth.max(depth);
                shape.values += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' | b':' => shape.values += 1,
            _ => {}
        });
        shape
    }
}

fn outside_of_texts(json: &[u8], mut see: impl FnMut(u8)) {
    let (mut in_text, mut escaped) = (false, false);
    for &byte in json {
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
    fn a_shape_counts_what_is_outside_of_texts() {
        for (text, depth, values) in [
            ("1", 0, 1),
            ("[]", 1, 2),
            ("[1,2]", 1, 3),
            (r#"{"a": ["[[[,,"]}"#, 2, 4),
            (r#""\"[[""#, 0, 1),
        ] {
            let shape = JsonShape { depth, values };
            assert_eq!(JsonShape::of(text.as_bytes()), shape, "{text}");
        }
    }

    /// How many values and names there are.
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
            Value::Object(members) => 1 + members.values().map(|it| 1 + count(it)).sum::<usize>(),
            _ => 1,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..6)
                    .prop_map(|members| members.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}") {
            let _ = (lenient(&text), JsonShape::of(text.as_bytes()));
        }

        #[test]
        fn g_1_reading_never_makes_more_values_than_the_shape_says(value in any_json()) {
            let shape = JsonShape::of(value.to_string().as_bytes());
            prop_assert!(count(&value) <= shape.values, "{} {:?}", value, shape);
        }
    }
}
