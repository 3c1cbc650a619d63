//! Fuzz targets: each takes any bytes, and panics when something holds no more.
//!
//! They are plain functions, so that a stable toolchain runs them in `tests/smoke.rs` over the
//! corpus and random input, and a fuzzer needs one line to drive them:
//! `fuzz_target!(|data: &[u8]| zareba_fuzz::renderer(data));`.
//!
//! Two parsers of hostile bytes are private to the executor, what shells report and the text of
//! commands; their properties are tested beside them, in `shell/report.rs` and `shell/split.rs`.

use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_terminal::{Limits, Screen, Size};

/// Small, so that few bytes reach every border.
const SIZE: Size = Size {
    columns: 13,
    rows: 5,
};
const LIMITS: Limits = Limits {
    lines: 20,
    history_bytes: 400,
};

/// The most that a cell holds: a character, and the marks on it.
const CELL_MAX_BYTES: usize = 4 + 64;

/// What a screen shows does not depend on how its input was cut, and stays within its limits.
pub fn renderer(data: &[u8]) {
    let (&cut, bytes) = data.split_first().unwrap_or((&0, &[]));
    let cut = usize::from(cut).min(bytes.len());
    let (mut whole, mut parts) = (Screen::new(SIZE, LIMITS), Screen::new(SIZE, LIMITS));
    whole.feed(bytes);
    parts.feed(&bytes[..cut]);
    parts.mark_seen();
    assert!(parts.unseen().text.trim().is_empty());
    parts.feed(&bytes[cut..]);
    let text = whole.text();
    assert_eq!(text, parts.text());
    assert!(text.lines <= LIMITS.lines);
    let on_screen = usize::from(SIZE.rows) * (usize::from(SIZE.columns) + 1) * CELL_MAX_BYTES;
    assert!(text.text.len() <= on_screen + LIMITS.history_bytes + LIMITS.lines);
    assert!(text.text.ends_with(parts.unseen().text.trim_start()));
    whole.resize(Size {
        columns: 3,
        rows: 2,
    });
    whole.feed(bytes);
    assert!(whole.text().lines <= LIMITS.lines);
}

/// What was decoded is encoded and decoded to the same again, and the rest is refused.
pub fn action_decoder(data: &[u8]) {
    if let Ok(event) = ActionEvent::from_json(data) {
        let again = ActionEvent::from_value(event.to_value());
        assert_eq!(again.ok(), Some(event));
    }
    if let Ok(event) = ObservationEvent::from_json(data) {
        let again = ObservationEvent::from_value(event.to_value());
        assert_eq!(again.ok(), Some(event));
    }
}
