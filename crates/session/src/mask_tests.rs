//! No form of a secret comes through, whole or in pieces.

use base64::{Engine as _, engine::general_purpose};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn mask(values: &[&str]) -> Mask {
    let secrets: Vec<Secret> = values.iter().map(|it| Secret((*it).to_owned())).collect();
    Mask::new(&secrets)
}

#[test]
fn every_form_is_hidden() {
    let value = "pa$$ w\"rd/+ü\n";
    let mask = mask(&[value]);
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let forms = [
        value.to_owned(),
        hex.to_uppercase(),
        hex,
        "pa%24%24%20w%22rd%2F%2B%C3%BC%0A".to_owned(),
        "pa%24%24+w%22rd%2f%2b%c3%bc%0a".to_owned(),
        r#"pa$$ w\"rd/+ü\n"#.to_owned(),
        r#"pa$$ w\"rd/+\u00fc\n"#.to_owned(),
    ];
    for form in forms {
        let shown = format!("before {form} after");
        assert_eq!(
            mask.text(&shown),
            format!("before {HIDDEN} after"),
            "{form}"
        );
    }
}

#[test]
fn short_values_and_values_that_the_replacement_shows_are_left() {
    assert!(mask(&["abc", ""]).is_empty());
    let plain = mask(&["secret"]);
    assert_eq!(
        plain.text("secret <secret_hidden>"),
        "secret <secret_hidden>"
    );
}

#[test]
fn overlapping_secrets_are_hidden_as_one() {
    let mask = mask(&["abcdef", "defghi", "aaaa"]);
    assert_eq!(mask.text("xabcdefghix"), format!("x{HIDDEN}x"));
    assert_eq!(mask.text("aaaaaaa"), HIDDEN);
    assert_eq!(mask.text("abcdefabcdef"), format!("{HIDDEN}{HIDDEN}"));
}

#[test]
fn all_strings_of_an_object_are_masked() {
    let mask = mask(&["hunter22"]);
    let mut value = json!({"a hunter22": [{"b": "x hunter22"}, 1, null], "c": "plain"});
    let object = value.as_object_mut().unwrap();
    assert_eq!(mask.object(object), Masked::Changed);
    assert_eq!(
        value,
        json!({"a <secret_hidden>": [{"b": "x <secret_hidden>"}, 1, null], "c": "plain"})
    );
    assert_eq!(mask.object(value.as_object_mut().unwrap()), Masked::Same);
}

#[test]
fn a_prompt_is_not_held_back() {
    let mut stream = mask(&["hunter22"]).stream();
    assert_eq!(stream.push(b"Password: "), b"Password: ");
    assert_eq!(stream.push(b"hunt"), b"");
    assert_eq!(stream.push(b"ing"), b"hunting");
    assert_eq!(stream.push(b"hunter2"), b"");
    assert_eq!(stream.push(b"2!"), b"<secret_hidden>!");
    assert_eq!(stream.push(b"hunter2"), b"");
    assert_eq!(stream.finish(), b"hunter2");
}

#[test]
fn values_are_not_shown_by_debugging() {
    let shown = format!(
        "{:?} {:?}",
        mask(&["hunter22"]),
        Secret("hunter22".to_owned())
    );
    assert!(!shown.contains("hunter22"), "{shown}");
}

/// Values over a small alphabet meet themselves and each other often.
fn values() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab]{4,7}", 1..4)
}

fn hidden(values: &[String]) -> Mask {
    let secrets: Vec<Secret> = values.iter().cloned().map(Secret).collect();
    Mask::new(&secrets)
}

proptest! {
    #[test]
    fn no_value_is_left(values in values(), text in "[abc]{0,40}") {
        let masked = hidden(&values).text(&text).into_owned();
        for value in &values {
            prop_assert!(!masked.contains(value), "{masked}");
        }
    }

    #[test]
    fn masking_twice_changes_nothing(values in values(), text in "[abc]{0,40}") {
        let mask = hidden(&values);
        let once = mask.text(&text).into_owned();
        prop_assert_eq!(mask.text(&once), once.as_str());
    }

    #[test]
    fn pieces_are_masked_as_the_whole_and_little_is_held(
        values in values(),
        pieces in prop::collection::vec("[abc]{0,9}", 0..12),
    ) {
        let mask = hidden(&values);
        let longest = mask.finder.as_ref().unwrap().longest;
        let (mut stream, mut shown) = (mask.stream(), Vec::new());
        for piece in &pieces {
            shown.extend(stream.push(piece.as_bytes()));
            prop_assert!(stream.held() < longest);
        }
        shown.extend(stream.finish());
        let whole = pieces.concat();
        prop_assert_eq!(String::from_utf8(shown).unwrap(), mask.text(&whole).into_owned());
    }

    #[test]
    fn base64_is_hidden_wherever_the_value_begins(
        before in prop::collection::vec(any::<u8>(), 0..7),
        value in "[ -~]{4,24}",
        after in prop::collection::vec(any::<u8>(), 0..7),
    ) {
        let mask = hidden(std::slice::from_ref(&value));
        let bytes = [&before[..], value.as_bytes(), &after[..]].concat();
        for engine in [&general_purpose::STANDARD, &general_purpose::URL_SAFE] {
            let encoded = engine.encode(&bytes);
            prop_assert!(mask.hides(&encoded), "{encoded}");
            let masked = mask.text(&encoded).into_owned();
            prop_assert!(masked.contains(HIDDEN));
            // What is left around it are the letters of its neighbours, and at most one of its own
            // on each side.
            let around = masked.len() - HIDDEN.len();
            prop_assert!(around <= encoded.len() - (value.len() * 4 / 3).saturating_sub(2));
        }
    }
}
