//! Every bit of a stored record counts.

use proptest::prelude::*;

use super::*;

fn row(payload: &str, key: Option<&str>, cause: Option<u64>) -> Row {
    let session = SessionId::new("s-1").unwrap();
    let mut row = Row {
        sequence: 7,
        time: time_text("2026-01-02T03:04:05.678901Z".parse().unwrap()),
        kind: "action".to_owned(),
        cause,
        key: key.map(str::to_owned),
        stored: Stored::Inline(payload.to_owned()),
        previous: origin(&session).to_string(),
        digest: String::new(),
        session,
    };
    row.digest = row.computed().unwrap().to_string();
    row
}

/// Flips one bit of a text; `None` when the result is no text any more, which no database returns.
fn flipped(text: &str, bit: usize) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let at = bit % (bytes.len() * 8);
    bytes[at / 8] ^= 1 << (at % 8);
    String::from_utf8(bytes).ok()
}

proptest! {
    #[test]
    fn el_1_any_flipped_bit_of_a_stored_record_is_found(
        field in 0_usize..8, bit in any::<usize>(), text in "[ -~]{1,40}",
    ) {
        let payload = serde_json::json!({ "text": text }).to_string();
        let good = row(&payload, Some("key"), Some(3));
        prop_assert!(good.check().is_ok());
        let mut bad = good.clone();
        let changed = match field {
            0 => flipped(&good.time, bit).map(|text| bad.time = text),
            1 => flipped(&good.kind, bit).map(|text| bad.kind = text),
            2 => flipped("key", bit).map(|text| bad.key = Some(text)),
            3 => flipped(&payload, bit).map(|text| bad.stored = Stored::Inline(text)),
            4 => flipped(&good.previous, bit).map(|text| bad.previous = text),
            5 => flipped(&good.digest, bit).map(|text| bad.digest = text),
            6 => { bad.sequence ^= 1 << (bit % 63); Some(()) }
            _ => { bad.cause = Some(3 ^ (1 << (bit % 63))); Some(()) }
        };
        prop_assume!(changed.is_some());
        prop_assert!(bad.check().is_err(), "{bad:?}");
    }
}

#[test]
fn fields_do_not_run_into_each_other() {
    let mut with_key = row("{}", Some("some"), None);
    let mut without = row("{}", None, None);
    assert_ne!(with_key.digest, without.digest);
    with_key.stored = Stored::Apart("{}".to_owned());
    assert!(with_key.check().is_err());
    without.session = SessionId::new("s-2").unwrap();
    assert!(without.check().is_err());
}
