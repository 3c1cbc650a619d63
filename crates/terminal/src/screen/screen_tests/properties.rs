//! What holds for every input.

use proptest::prelude::*;

use super::*;

/// Bytes that a terminal gives a meaning, between bytes of all kinds.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let sequence = "\x1b\\[[0-9;?:>! ]{0,8}[@-~]".prop_map(String::into_bytes);
    let string = "\x1b[\\]P_X^][ -~é]{0,12}(\x07|\x1b\\\\|\x18|)".prop_map(String::into_bytes);
    let escape = "\x1b[ -/]{0,2}[0-~]".prop_map(String::into_bytes);
    let text =
        "[ a-z\r\n\t\x08\x0b\x7fé世\u{301}\u{200d}🎉\u{85}]{0,40}".prop_map(String::into_bytes);
    let piece = prop_oneof![
        3 => text,
        3 => sequence,
        1 => string,
        1 => escape,
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => prop::collection::vec(0x7fu8.., 0..8),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn size() -> impl Strategy<Value = Size> {
    (1u16..30, 1u16..12).prop_map(|(columns, rows)| Size { columns, rows })
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        bytes in output(),
        size in size(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut whole = Screen::new(size, WIDE);
        whole.feed(&bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut in_pieces = Screen::new(size, WIDE);
        let mut start = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            in_pieces.feed(&bytes[start..cut]);
            start = cut;
        }
        let mut byte_by_byte = Screen::new(size, WIDE);
        for byte in &bytes {
            byte_by_byte.feed(std::slice::from_ref(byte));
        }
        prop_assert_eq!(whole.text(), in_pieces.text());
        prop_assert_eq!(whole.text(), byte_by_byte.text());
        prop_assert_eq!(whole.take_replies(), byte_by_byte.take_replies());
    }

    #[test]
    fn limits_hold_whatever_is_written(bytes in output(), size in size(), lines in 0usize..30, history_bytes in 0usize..500) {
        let mut screen = Screen::new(size, Limits { lines, history_bytes });
        for _ in 0..20 {
            screen.feed(&bytes);
        }
        let text = screen.text();
        prop_assert!(text.lines <= lines.max(usize::from(size.rows)));
        let on_screen = usize::from(size.rows) * (usize::from(size.columns) + 1) * (4 + 64);
        prop_assert!(text.text.len() <= on_screen + history_bytes + lines);
        prop_assert!(screen.take_replies().len() <= 1024);
    }

    #[test]
    fn whatever_happens_on_a_screen_it_can_be_looked_at_and_goes_on(
        steps in prop::collection::vec((output(), 0u8..6, size()), 0..8),
    ) {
        let mut screen = small();
        for (bytes, step, size) in steps {
            screen.feed(&bytes);
            match step {
                0 => screen.resize(size),
                1 => screen.clear(),
                2 => screen.mark_seen(),
                _ => {}
            }
            let (unseen, text) = (screen.unseen(), screen.text());
            prop_assert!(text.text.ends_with(unseen.text.trim_start()), "{:?} in {:?}", unseen.text, text.text);
        }
        screen.feed(b"\x18\x1bcstill here");
        prop_assert!(screen.text().text.ends_with("still here"));
    }

    #[test]
    fn plain_text_comes_out_as_it_went_in(
        lines in prop::collection::vec("([!-~é世🎉]([ -~é世🎉\u{301}]{0,60}[!-~é世🎉])?)?", 1..20),
        size in size(),
    ) {
        let limits = Limits { lines: 1 << 20, history_bytes: 1 << 20 };
        let size = Size { columns: size.columns.max(2), ..size };
        let mut screen = Screen::new(size, limits);
        screen.feed(lines.join("\r\n").as_bytes());
        let text = lines.join("\n");
        prop_assert_eq!(screen.text().text, text.trim_end());
        prop_assert!(!screen.text().truncated);
    }

    #[test]
    fn looking_in_between_loses_and_repeats_nothing(
        lines in prop::collection::vec("[!-~é世][ -~é世]{0,50}[!-~é世]", 1..30),
        size in size(),
    ) {
        let mut screen = Screen::new(Size { columns: size.columns.max(2), ..size }, Limits { lines: 1 << 20, history_bytes: 1 << 20 });
        for line in &lines {
            screen.feed(line.as_bytes());
            screen.feed(b"\r\n");
            prop_assert_eq!(&screen.unseen().text, line);
            screen.mark_seen();
        }
    }
}
