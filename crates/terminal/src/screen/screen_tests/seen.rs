//! What is new since somebody looked.

use super::*;

/// What is new after `later`, for somebody who saw the screen after `earlier`.
fn news(earlier: &str, later: &str) -> String {
    let mut screen = small();
    screen.feed(earlier.as_bytes());
    screen.mark_seen();
    screen.feed(later.as_bytes());
    screen.unseen().text
}

#[test]
fn everything_is_new_to_somebody_who_never_looked() {
    let mut screen = small();
    screen.feed(b"1\r\n2");
    assert_eq!(screen.unseen(), screen.text());
    assert_eq!(screen.unseen().text, "1\n2");
}

#[test]
fn nothing_is_new_as_long_as_nothing_is_written() {
    assert_eq!(news("1\r\n2", ""), "");
    assert_eq!(news("1\r\n2\r\n", ""), "");
    assert_eq!(news("1\r\n2", "\x1b[31m\x1b[6n\x07"), "");
    assert_eq!(news("", ""), "");
}

#[test]
fn only_what_was_appended_is_new() {
    assert_eq!(news("1\r\n2\r\n", "3\r\n4"), "3\n4");
    assert_eq!(news("1\r\n2", "\r\n3"), "\n3");
    assert_eq!(news("Name: ", "Ann\r\nHi"), "Ann\nHi");
    assert_eq!(news("12", "34"), "34");
    assert_eq!(news("世界", "!世"), "!世");
    assert_eq!(news("e\u{301}x", "y"), "y");
}

#[test]
fn the_rest_of_a_wrapped_line_is_new_and_its_beginning_is_not() {
    assert_eq!(news("abcdefghijklmnopqrst", "uvw"), "uvw");
    assert_eq!(news("abcdefghijklmnopqrstuv", "wx"), "wx");
}

#[test]
fn what_was_appended_is_new_also_when_all_before_has_scrolled_away() {
    let later: String = (3..=40).map(|number| format!("{number}\r\n")).collect();
    let expected: Vec<String> = (3..=40).map(|number| number.to_string()).collect();
    assert_eq!(news("1\r\n2\r\n", &later), expected.join("\n"));
    assert_eq!(
        news("世界", &format!("!\r\n{later}")),
        format!("!\n{}", expected.join("\n"))
    );
}

#[test]
fn a_line_that_was_rewritten_is_new_as_a_whole() {
    assert_eq!(news("get\r\n 10%", "\r 50%"), " 50%");
    assert_eq!(news("get\r\n 10%", "\x08\x089%"), " 19%");
    assert_eq!(news("get\r\n100%", "\r\x1b[Kdone"), "done");
    assert_eq!(news("a\r\nb\r\nc", "\x1b[2AX"), "aX\nb\nc");
    assert_eq!(news("a\r\nb\r\nc", "\x1b[A\x1b[M"), "c");
}

#[test]
fn a_screen_that_was_cleared_is_new_as_a_whole() {
    assert_eq!(news("1\r\n2\r\n3", "\x1b[H\x1b[2J4"), "4");
    assert_eq!(news("1\r\n2\r\n3", "\x1bc4"), "4");
    assert_eq!(news("1\r\n2\r\n3", "\x1b[H\x1b[J4"), "4");
}

#[test]
fn what_comes_after_a_cleared_past_is_not_lost() {
    let long: String = (1..=30).map(|number| format!("{number}\r\n")).collect();
    assert_eq!(news(&long, "\x1b[H\x1b[2J\x1b[3Jnew"), "new");
    assert_eq!(news(&long, "\x1b[3Jnew"), "new");
}

#[test]
fn another_screen_is_new_as_a_whole() {
    assert_eq!(news("1\r\n2", "\x1b[?1049hfile"), "file");
    assert_eq!(news("1\r\n2\x1b[?1049hfile", "\x1b[?1049l"), "1\n2");
}

#[test]
fn an_alternate_screen_that_scrolled_is_new_as_a_whole() {
    assert_eq!(
        news("\x1b[?1049h1\r\n2\r\n3\r\n4\r\n5", "\r\n6\r\n7"),
        "3\n4\n5\n6\n7"
    );
    assert_eq!(news("\x1b[?1049h1\r\n2\r\n3\r\n4", "\r\n5"), "\n5");
}

#[test]
fn what_the_past_could_not_hold_is_told() {
    let mut screen = Screen::new(
        Size {
            columns: 20,
            rows: 5,
        },
        Limits { lines: 10, ..WIDE },
    );
    screen.feed(b"1\r\n2\r\n");
    screen.mark_seen();
    let later: String = (3..=30).map(|number| format!("{number}\r\n")).collect();
    screen.feed(later.as_bytes());
    let kept: Vec<String> = (22..=30).map(|number| number.to_string()).collect();
    assert_eq!(
        screen.unseen(),
        Rendered {
            text: kept.join("\n"),
            lines: 9,
            truncated: true
        }
    );
    screen.mark_seen();
    screen.feed(b"31");
    assert_eq!(
        screen.unseen(),
        Rendered {
            text: "31".to_owned(),
            lines: 1,
            truncated: false
        }
    );
}

#[test]
fn looking_twice_counts_from_the_second_look() {
    let mut screen = small();
    for (text, expected) in [("a\r\n", "a"), ("b\r\n", "b"), ("", ""), ("c\r\n", "c")] {
        screen.feed(text.as_bytes());
        assert_eq!(screen.unseen().text, expected);
        screen.mark_seen();
    }
}
