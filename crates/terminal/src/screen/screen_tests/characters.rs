//! Characters of all widths, broken ones, and lines that reach the border.

use super::*;

#[test]
fn a_line_that_wraps_at_the_border_is_whole_again() {
    assert_eq!(text_of(5, 4, "abcdefghijkl\r\nnext"), "abcdefghijkl\nnext");
    assert_eq!(text_of(5, 4, "abcde\r\nfgh"), "abcde\nfgh");
    assert_eq!(
        text_of(5, 2, &"0123456789".repeat(10)),
        "0123456789".repeat(10)
    );
}

#[test]
fn a_wrapped_line_keeps_the_blanks_at_the_border() {
    assert_eq!(text_of(5, 4, "ab   cd"), "ab   cd");
    assert_eq!(text_of(5, 4, "     x"), "     x");
}

#[test]
fn a_line_erased_to_its_end_is_not_continued_any_more() {
    assert_eq!(text_of(5, 4, "abcdefg\x1b[A\x1b[K"), "ab\nfg");
}

#[test]
fn lines_inserted_or_deleted_within_a_wrapped_line_part_it() {
    assert_eq!(text_of(5, 4, "abcdefg\x1b[L"), "abcde\n\nfg");
    assert_eq!(
        text_of(5, 4, "abcdefg\r\nnext\x1b[2;1H\x1b[M"),
        "abcde\nnext"
    );
}

#[test]
fn without_wrapping_the_last_column_is_written_over() {
    assert_eq!(text_of(5, 4, "\x1b[?7labcdefgh\x1b[?7h"), "abcdh");
    assert_eq!(text_of(5, 4, "\x1b[?7labcde\x1b[?7hXYZ"), "abcdXYZ");
}

#[test]
fn a_move_takes_back_a_wrap_that_was_due() {
    assert_eq!(text_of(5, 4, "abcde\rX"), "Xbcde");
    assert_eq!(text_of(5, 4, "abcde\x08X"), "abcXe");
    assert_eq!(text_of(5, 4, "abcde\nX"), "abcde\n    X");
}

#[test]
fn wide_characters_take_two_columns_and_never_stand_across_the_border() {
    check("世界\rab", "ab界");
    check("世界\x1b[4Da", "a 界");
    check("世界\x1b[3Da", " a界");
    assert_eq!(text_of(5, 4, "世界世界"), "世界世界");
    assert_eq!(text_of(4, 4, "世界a"), "世界a");
    assert_eq!(text_of(1, 4, "世a"), "世a");
}

#[test]
fn erasing_half_of_a_wide_character_erases_it() {
    check("世界\x1b[1;2H\x1b[X", "  界");
    check("世界\x1b[1;2H\x1b[P", " 界");
    check("世界\x1b[1;2H\x1b[@", "   界");
    check("世界\x1b[1;2H\x1b[K", "");
}

#[test]
fn marks_stay_with_the_character_before_them() {
    check("e\u{301}a\u{308}\u{304}x", "e\u{301}a\u{308}\u{304}x");
    check("世\u{301}x", "世\u{301}x");
    assert_eq!(text_of(5, 2, "abcde\u{301}f"), "abcde\u{301}f");
    check("e\u{301}\rx", "x");
    check("\u{301}a\r\n\u{301}b", "a\nb");
}

#[test]
fn joined_emoji_and_flags_come_out_as_they_went_in() {
    for text in [
        "👩‍👩‍👧‍👦",
        "🏳️‍🌈",
        "👍🏽",
        "🇩🇪🇫🇷",
        "☂️",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    ] {
        assert_eq!(text_of(40, 2, &format!("<{text}>")), format!("<{text}>"));
    }
}

#[test]
fn line_drawing_shows_lines_until_it_ends() {
    check(
        "\x1b(0lqk\x1b(B\r\n\x1b(0x\x1b(Bx\x1b(0x\x1b(B\r\n\x1b(0mqj\x1b(B",
        "┌─┐\n│x│\n└─┘",
    );
}

#[test]
fn bytes_that_are_no_text_show_as_replacements() {
    let cases: [(&[u8], &str); 7] = [
        (b"a\xffb", "a\u{fffd}b"),
        (b"a\xc3(", "a\u{fffd}("),
        (b"a\xe2\x82\r\nb", "a\u{fffd}\nb"),
        (b"a\xf0\x9f\x98\x1b[1mb", "a\u{fffd}b"),
        (b"a\x80\x9bb", "a\u{fffd}\u{fffd}b"),
        (b"a\xed\xa0\x80b", "a\u{fffd}\u{fffd}\u{fffd}b"),
        (b"a\xc2\x85\xc2\x9bb", "ab"),
    ];
    for (bytes, expected) in cases {
        let mut screen = small();
        screen.feed(bytes);
        assert_eq!(screen.text().text, expected, "after {bytes:?}");
    }
}

#[test]
fn a_character_cut_between_two_chunks_is_whole_and_costs_no_neighbour() {
    let text = "éaé世b🎉c\u{301}";
    for cut in 0..=text.len() {
        let mut screen = small();
        screen.feed(&text.as_bytes()[..cut]);
        screen.feed(&text.as_bytes()[cut..]);
        assert_eq!(screen.text().text, text, "cut at {cut}");
    }
}

#[test]
fn a_character_that_never_ends_shows_once_something_else_comes() {
    let mut screen = small();
    screen.feed(b"a\xe4\xb8");
    assert_eq!(screen.text().text, "a");
    screen.feed(b"b");
    assert_eq!(screen.text().text, "a\u{fffd}b");
}
