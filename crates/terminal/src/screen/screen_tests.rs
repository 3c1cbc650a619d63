//! What people see after programs wrote: characters, moves, erasures and modes.

#[path = "screen_tests/characters.rs"]
mod characters;
#[path = "screen_tests/hostile.rs"]
mod hostile;
#[path = "screen_tests/properties.rs"]
mod properties;
#[path = "screen_tests/seen.rs"]
mod seen;
#[path = "screen_tests/windows.rs"]
mod windows;

use super::*;

const WIDE: Limits = Limits {
    lines: 1000,
    history_bytes: 1024 * 1024,
};

/// A screen small enough to run into its borders.
fn small() -> Screen {
    Screen::new(
        Size {
            columns: 20,
            rows: 5,
        },
        WIDE,
    )
}

fn screen(columns: u16, rows: u16) -> Screen {
    Screen::new(Size { columns, rows }, WIDE)
}

fn text_of(columns: u16, rows: u16, input: &str) -> String {
    let mut screen = screen(columns, rows);
    screen.feed(input.as_bytes());
    screen.text().text
}

#[track_caller]
fn check(input: &str, expected: &str) {
    let mut screen = small();
    screen.feed(input.as_bytes());
    assert_eq!(screen.text().text, expected, "after {input:?}");
}

#[test]
fn text_comes_out_as_it_went_in_without_trailing_blanks() {
    check("", "");
    check(
        "one\r\n  two  \r\n\r\nthree   \r\n\r\n",
        "one\n  two\n\nthree",
    );
}

#[test]
fn a_line_feed_alone_keeps_the_column() {
    check("ab\ncd", "ab\n  cd");
    check("ab\x0bcd\x0cef", "ab\n  cd\n    ef");
}

#[test]
fn a_carriage_return_lets_the_line_be_overwritten() {
    check("10%\r50%\r100%", "100%");
    check("a long one\rshort", "shortg one");
}

#[test]
fn a_backspace_moves_left_and_erases_nothing_by_itself() {
    check("abc\x08\x08X", "aXc");
    check("\x08\x08a", "a");
    check("typo\x08 \x08", "typ");
}

#[test]
fn tabs_go_to_every_eighth_column_and_stop_at_the_border() {
    check("\ta\tb", "        a       b");
    check("a\t\t\t\t\tb", "a                  b");
    check("\x1b[2Iab\x1b[Zc\x1b[2Zd", "        d       cb");
}

#[test]
fn controls_that_show_nothing_change_nothing() {
    check("a\x07b\x00c\x0e\x0fd\x7fe", "abcde");
}

#[test]
fn colours_and_styles_leave_no_trace() {
    check(
        "\x1b[1;31mred\x1b[0m \x1b[38;5;12mblue\x1b[m \x1b[38:2::1:2:3mrgb",
        "red blue rgb",
    );
}

#[test]
fn the_cursor_moves_as_told_and_no_further_than_the_border() {
    check("\x1b[3;5Hx", "\n\n    x");
    check("\x1b[3;5fx\x1b[Hy", "y\n\n    x");
    check("ab\x1b[Cc\x1b[4Dd", "db c");
    check("a\x1b[2Bb\x1b[1Ac", "a\n  c\n b");
    check("abc\x1b[2Ed\x1b[1Fe\x1b[7Gf", "abc\ne     f\nd");
    check(
        "a\x1b[4db\x1b[3`c\x1b[2ad\x1b[2ee",
        "a\n\n\n bc  d\n      e",
    );
    check(
        "\x1b[99;99Hx\x1b[99Ay\x1b[99D\x1b[99Bz",
        "                   y\n\n\n\nz                  x",
    );
}

#[test]
fn a_saved_cursor_is_found_again() {
    check("ab\x1b7\r\ncd\x1b8e", "abe\ncd");
    check("ab\x1b[s\r\ncd\x1b[ue", "abe\ncd");
    check("ab\x1b[?1048h\r\ncd\x1b[?1048le", "abe\ncd");
}

#[test]
fn a_line_is_erased_to_its_end_to_its_start_or_whole() {
    check("abcdef\x1b[3D\x1b[K", "abc");
    check("abcdef\x1b[3D\x1b[0K", "abc");
    check("abcdef\x1b[3D\x1b[1K", "    ef");
    check("abcdef\x1b[3D\x1b[2Kx", "   x");
    check("abcdef\x1b[3D\x1b[9K", "abcdef");
}

#[test]
fn the_screen_is_erased_below_above_or_whole() {
    check("one\r\ntwo\r\nthree\x1b[2;2H\x1b[J", "one\nt");
    check("one\r\ntwo\r\nthree\x1b[2;2H\x1b[1J", "\n  o\nthree");
    check("one\r\ntwo\r\nthree\x1b[2;2H\x1b[2Jx", "\n x");
    check("one\r\ntwo\r\nthree\x1b[H\x1b[2J\x1b[3Jx", "x");
}

#[test]
fn characters_are_erased_deleted_and_inserted_in_a_line() {
    check("abcdef\x1b[5D\x1b[2X", "a  def");
    check("abcdef\x1b[5D\x1b[2P", "adef");
    check("abcdef\x1b[5D\x1b[2@", "a  bcdef");
    check("abcdefghijklmnopqrst\r\x1b[3@", "   abcdefghijklmnopq");
    check("abc\x1b[9@\x1b[9P\x1b[9Xd", "abcd");
}

#[test]
fn lines_are_inserted_and_deleted_at_the_cursor() {
    check("1\r\n2\r\n3\r\n4\r\n5\x1b[2;1H\x1b[L", "1\n\n2\n3\n4");
    check("1\r\n2\r\n3\r\n4\r\n5\x1b[2;1H\x1b[2M", "1\n4\n5");
    check("1\r\n2\x1b[1;1H\x1b[65535L", "");
    check("1\r\n2\x1b[1;1H\x1b[65535M", "");
}

#[test]
fn a_reset_gives_a_new_screen() {
    check(
        "abc\x1b[2;3r\x1b[?7l\x1b(0\x1bcabcdefghijklmnopqrstu",
        "abcdefghijklmnopqrstu",
    );
}

#[test]
fn sequences_with_a_purpose_elsewhere_are_ignored() {
    check("a\x1b]0;a title\x07b", "ab");
    check("a\x1b]0;a title\x1b\\b", "ab");
    check(
        "a\x1b]52;c;aGk=\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b",
        "alinkb",
    );
    check("a\x1bPq#0;2;0;0;0~~-\x1b\\b", "ab");
    check(
        "a\x1b_application\x1b\\\x1b^private\x1b\\\x1bXstring\x1b\\b",
        "ab",
    );
    check("a\x1b]0;ünïcode 世界\x07b\x1bPü\x1b\\c", "abc");
    check(
        "a\x1b[?25l\x1b[?2004h\x1b=\x1b>\x1b#8\x1b[>4;2m\x1b[!p\x1b[4hb",
        "ab",
    );
}

#[test]
fn a_sequence_that_makes_no_sense_is_passed_over_and_what_follows_is_shown() {
    check("a\x1b[1?2?zéb", "aéb");
    check("a\x1b[1 2zéb", "aéb");
    check("a\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;mb", "ab");
    check("a\x1b[31\x18b", "ab");
    check("a\x1b]never ended\x1ab", "ab");
    check("a\x1b\x1b\x1b[1mb", "ab");
    check("a\x1b[3\r\n1mb", "a\nb");
}

#[test]
fn programs_that_ask_the_terminal_get_their_answer_once() {
    let mut screen = small();
    screen.feed(b"ab\r\nc\x1b[6n\x1b[5n\x1b[c\x1b[0c\x1b[99n\x1b[>c");
    assert_eq!(screen.take_replies(), b"\x1b[2;2R\x1b[0n\x1b[?6c\x1b[?6c");
    assert_eq!(screen.take_replies(), b"");
    assert_eq!(screen.text().text, "ab\nc");
}

#[test]
fn clear_forgets_everything_also_a_sequence_or_a_character_that_has_begun() {
    for begun in [
        &b"text\r\nmore"[..],
        b"\x1b[3",
        b"\x1b]0;title",
        b"\xe4\xb8",
        b"\x1b[?1049h",
        b"\x1b(0",
    ] {
        let mut screen = small();
        screen.feed(begun);
        screen.mark_seen();
        screen.clear();
        screen.feed(b"mq");
        let expected = Rendered {
            text: "mq".to_owned(),
            lines: 1,
            truncated: false,
        };
        assert_eq!(
            (screen.text(), screen.unseen()),
            (expected.clone(), expected),
            "after {begun:?}"
        );
    }
}
