//! Programs that write to hurt: memory and time stay bounded.

use std::time::{Duration, Instant};

use super::*;

/// The size and limits that shells use.
fn large() -> Screen {
    Screen::new(
        Size {
            columns: 1000,
            rows: 1000,
        },
        Limits {
            lines: 11_000,
            history_bytes: 1024 * 1024,
        },
    )
}

/// Far more than any of these takes, far less than a quadratic one would.
const LONG: Duration = Duration::from_secs(20);

#[track_caller]
fn flood(unit: &str, count: usize) -> Screen {
    let mut screen = large();
    let chunk = unit.repeat(1000);
    let started = Instant::now();
    for _ in 0..count.div_ceil(1000) {
        screen.feed(chunk.as_bytes());
    }
    assert!(
        started.elapsed() < LONG,
        "{unit:?} took {:?}",
        started.elapsed()
    );
    screen
}

#[test]
fn a_million_combining_marks_stay_a_few() {
    let screen = flood("\u{301}", 1_000_000);
    assert_eq!(screen.text().text, "");
    let mut screen = large();
    screen.feed(format!("e{}", "\u{301}".repeat(1_000_000)).as_bytes());
    assert_eq!(screen.text().text, format!("e{}", "\u{301}".repeat(32)));
}

#[test]
fn marked_text_without_end_is_kept_within_the_byte_limit() {
    let unit = format!("e{}", "\u{301}".repeat(40));
    let mut screen = Screen::new(
        Size {
            columns: 100,
            rows: 10,
        },
        Limits {
            lines: 11_000,
            history_bytes: 100_000,
        },
    );
    for _ in 0..20_000 {
        screen.feed(unit.as_bytes());
    }
    let text = screen.text();
    assert!(text.truncated);
    // Ten rows on the screen, and the history.
    assert!(
        text.text.len() <= 10 * 100 * (1 + 64) + 100_000,
        "{}",
        text.text.len()
    );
}

#[test]
fn the_history_ends_at_its_lines_and_at_its_bytes() {
    let mut by_lines = Screen::new(
        Size {
            columns: 80,
            rows: 10,
        },
        Limits {
            lines: 100,
            history_bytes: 1 << 20,
        },
    );
    let mut by_bytes = Screen::new(
        Size {
            columns: 80,
            rows: 10,
        },
        Limits {
            lines: 1 << 20,
            history_bytes: 8_000,
        },
    );
    for number in 0..10_000 {
        let line = format!("{number:078}\r\n");
        by_lines.feed(line.as_bytes());
        by_bytes.feed(line.as_bytes());
    }
    let (by_lines, by_bytes) = (by_lines.text(), by_bytes.text());
    assert_eq!((by_lines.lines, by_lines.truncated), (99, true));
    assert_eq!((by_bytes.lines, by_bytes.truncated), (8_000 / 78 + 9, true));
    for text in [by_lines.text, by_bytes.text] {
        assert!(text.ends_with(&format!("{:078}", 9_999)));
    }
}

#[test]
fn no_lines_at_all_are_kept_beside_the_screen_when_the_limits_say_so() {
    for limits in [
        Limits {
            lines: 0,
            history_bytes: 1 << 20,
        },
        Limits {
            lines: 1 << 20,
            history_bytes: 0,
        },
    ] {
        let mut screen = Screen::new(
            Size {
                columns: 10,
                rows: 3,
            },
            limits,
        );
        screen.feed(b"1\r\n2\r\n3\r\n4");
        assert_eq!(
            screen.text(),
            Rendered {
                text: "2\n3\n4".to_owned(),
                lines: 3,
                truncated: true
            }
        );
    }
}

#[test]
fn rows_that_were_huge_once_do_not_eat_the_history_of_later_ones() {
    let mut screen = Screen::new(
        Size {
            columns: 1000,
            rows: 2,
        },
        Limits {
            lines: 500,
            history_bytes: 1 << 20,
        },
    );
    screen.feed(
        format!("{}\r\n", format!("e{}", "\u{301}".repeat(32)).repeat(1000))
            .repeat(100)
            .as_bytes(),
    );
    for number in 0..1000 {
        screen.feed(format!("{number}\r\n").as_bytes());
    }
    assert_eq!(screen.text().lines, 499);
}

#[test]
fn sequences_with_gigantic_numbers_cost_no_more_than_the_screen() {
    for action in "ABCDEFGHIJKLMPSTXZ@`adefrhlmnqsuc".chars() {
        flood(
            &format!("\x1b[99999999999999999999;99999999999999999999{action}"),
            1000,
        );
    }
    flood("x\x1b[65535L", 20_000);
    flood("x\x1b[65535M", 20_000);
    flood("\x1b[2;999rx\x1b[999;1H\n", 20_000);
}

#[test]
fn a_string_without_end_is_not_kept() {
    // Nothing can be asked about it but time: the parser's buffer has a fixed size.
    for start in [
        "\x1b]0;",
        "\x1bP",
        "\x1b_",
        "\x1b[",
        "\x1b[1;2;",
        "\x1b",
        "\x1b\x1b",
    ] {
        let mut screen = large();
        screen.feed(b"before");
        for _ in 0..1000 {
            screen.feed(start.as_bytes());
            screen.feed(&[b'0'; 1000]);
        }
        screen.feed(b"\x18 after");
        assert!(screen.text().text.ends_with(" after"));
    }
}

#[test]
fn a_flood_of_escapes_leaves_the_screen_usable() {
    let mut screen = flood("\x1b", 1_000_000);
    screen.feed(b"[1mhello");
    assert_eq!(screen.text().text, "hello");
}

#[test]
fn a_program_that_asks_and_never_listens_gets_a_bounded_answer() {
    let mut screen = flood("\x1b[6n", 100_000);
    let replies = screen.take_replies();
    assert!(
        !replies.is_empty() && replies.len() <= 1024,
        "{}",
        replies.len()
    );
    screen.feed(b"\x1b[5n");
    assert_eq!(screen.take_replies(), b"\x1b[0n");
}

#[test]
fn switching_screens_and_clearing_without_end_keeps_nothing() {
    let screen = flood(
        "\x1b[?1049h\x1b[2J世\n\x1b[?1049l\x1b[3J\x1bc\x1b7\x1b8",
        50_000,
    );
    assert_eq!(screen.text().text, "");
}
