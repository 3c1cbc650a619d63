//! Scrolling, margins, the alternate screen and other sizes.

use super::*;

/// `first` to `last`, one in a line.
fn numbers(first: usize, last: usize) -> String {
    (first..=last)
        .map(|number| format!("{number}\r\n"))
        .collect()
}

fn lines(first: usize, last: usize) -> String {
    (first..=last)
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_scrolls_away_is_kept() {
    check(&numbers(1, 50), &lines(1, 50));
    check("1\r\n2\r\n3\r\n4\r\n5\x1b[2Sx", "1\n2\n3\n4\n5\n\n x");
}

#[test]
fn scrolling_down_brings_empty_lines_and_not_the_past() {
    check("1\r\n2\x1b[2T\x1b[Hx", "x\n\n1\n2");
    check("1\r\n2\x1b[H\x1bMx", "x\n1\n2");
    check("1\r\n2\x1bMx", "1x\n2");
}

#[test]
fn index_and_next_line_move_down_and_scroll_at_the_end() {
    check("1\x1bD2\x1bE3", "1\n 2\n3");
    check("\x1b[5;1H1\x1bE2", "\n\n\n\n1\n2");
}

#[test]
fn only_the_lines_between_the_margins_scroll() {
    check(
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\nx",
        "1\n3\n4\nx\n5",
    );
    check(
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[2;1H\x1bMx",
        "1\nx\n2\n3\n5",
    );
    check(
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[3;1H\x1b[L",
        "1\n2\n\n3\n5",
    );
    check(
        "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[5;1H\x1b[L\x1b[M\nx",
        "1\n2\n3\n4\nx",
    );
}

#[test]
fn lines_above_a_status_line_scroll_into_the_past() {
    check(
        &format!("\x1b[5;1Hstatus\x1b[1;4r{}", numbers(1, 9)),
        &format!("{}\n\nstatus", lines(1, 9)),
    );
}

#[test]
fn margins_that_make_no_sense_mean_the_whole_screen() {
    for margins in [
        "\x1b[4;2r",
        "\x1b[3;3r",
        "\x1b[r",
        "\x1b[0;0r",
        "\x1b[1;99r",
    ] {
        check(&format!("{margins}{}", numbers(1, 9)), &lines(1, 9));
    }
}

#[test]
fn the_alternate_screen_covers_the_ordinary_one_and_leaves_nothing() {
    for mode in [47, 1047, 1049] {
        let mut screen = small();
        screen.feed(numbers(1, 9).as_bytes());
        screen
            .feed(format!("$ vim\x1b[?{mode}h\x1b[2J\x1b[Hthe file{}", numbers(1, 20)).as_bytes());
        assert_eq!(screen.text().text, lines(17, 20));
        screen.feed(format!("\x1b[?{mode}h\x1b[?{mode}l\x1b[?{mode}l!").as_bytes());
        assert_eq!(screen.text().text, format!("{}\n$ vim!", lines(1, 9)));
    }
}

#[test]
fn clearing_the_past_keeps_the_screen() {
    let mut screen = small();
    screen.feed(numbers(1, 9).as_bytes());
    screen.feed(b"\x1b[3J");
    assert_eq!(
        screen.text(),
        Rendered {
            text: lines(6, 9),
            lines: 4,
            truncated: false
        }
    );
    screen.feed(numbers(10, 20).as_bytes());
    assert_eq!(
        screen.text(),
        Rendered {
            text: lines(6, 20),
            lines: 15,
            truncated: false
        }
    );
}

#[test]
fn a_smaller_screen_moves_its_top_lines_to_the_past() {
    let mut screen = small();
    screen.feed(b"1\r\n2\r\n3\r\n4");
    screen.resize(Size {
        columns: 10,
        rows: 2,
    });
    screen.feed(b"x\r\n5 is a long line");
    assert_eq!(screen.text().text, "1\n2\n3\n4x\n5 is a long line");
}

#[test]
fn a_wider_screen_wraps_later() {
    let mut screen = screen(4, 3);
    screen.feed(b"abcdef\r\n");
    screen.resize(Size {
        columns: 10,
        rows: 3,
    });
    screen.feed(b"abcdefghijkl\x1b[6n");
    assert_eq!(screen.text().text, "abcdef\nabcdefghijkl");
    assert_eq!(screen.take_replies(), b"\x1b[3;3R");
}

#[test]
fn the_cursor_is_on_the_screen_after_every_resize() {
    let mut screen = screen(80, 50);
    screen.feed(b"\x1b[50;80H\x1b7");
    screen.resize(Size {
        columns: 10,
        rows: 5,
    });
    screen.feed(b"\x1b[6n");
    assert_eq!(screen.take_replies(), b"\x1b[5;10R");
    screen.feed(b"\x1b8\x1b[6n\x1b[?1049h");
    assert_eq!(screen.take_replies(), b"\x1b[5;10R");
    screen.resize(Size {
        columns: 3,
        rows: 2,
    });
    screen.feed(b"\x1b[?1049l\x1b[6n");
    assert_eq!(screen.take_replies(), b"\x1b[2;3R");
    screen.resize(Size {
        columns: 0,
        rows: 0,
    });
    screen.feed(b"ab\r\n");
    assert_eq!(screen.text().lines, 1);
}
