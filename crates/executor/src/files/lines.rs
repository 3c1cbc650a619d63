//! The arithmetic of line ranges, which clients rely on down to its oddities.

use std::ops::Range;

/// Which lines of `count` a `read` means: `start` from 0, `end` exclusive, −1 for the end.
///
/// A range at or past the end gives the last two lines, and an empty one gives one line.
pub(crate) fn read_range(start: i64, end: i64, count: usize) -> Range<usize> {
    let length = i64::try_from(count).unwrap_or(i64::MAX);
    let start = start.clamp(0, length);
    let (begin, end) = if end == -1 {
        (start, length)
    } else {
        let begin = start.min(length - 2).max(0);
        (begin, end.min(length).max(begin + 1))
    };
    let index = |line: i64| usize::try_from(line).unwrap_or_default().min(count);
    index(begin)..index(end)
}

/// Which lines of `count` a `write` replaces: those before `start` and from `end` on are kept.
///
/// Negative numbers count from the end, as in Python, except that an `end` of −1 keeps nothing.
pub(crate) fn write_range(start: i64, end: i64, count: usize) -> (usize, usize) {
    let length = i64::try_from(count).unwrap_or(i64::MAX);
    let index = |line: i64| {
        let line = if line < 0 {
            line.saturating_add(length)
        } else {
            line
        };
        usize::try_from(line).unwrap_or_default().min(count)
    };
    (index(start), if end == -1 { count } else { index(end) })
}

/// Where each line starts, counting a last line without a newline; every line keeps its newline.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_of_ten_lines_are_those_of_the_contract() {
        let check = |start, end, expected| assert_eq!(read_range(start, end, 10), expected);
        check(0, -1, 0..10);
        check(3, -1, 3..10);
        check(12, -1, 10..10);
        check(-4, -1, 0..10);
        check(0, 3, 0..3);
        check(9, 10, 8..10);
        check(20, 30, 8..10);
        check(5, 5, 5..6);
        check(5, 2, 5..6);
        check(0, 99, 0..10);
        check(2, -7, 2..3);
    }

    #[test]
    fn ranges_of_tiny_files_stay_inside() {
        assert_eq!(read_range(0, 5, 0), 0..0);
        assert_eq!(read_range(1, 5, 1), 0..1);
        assert_eq!(write_range(5, 9, 2), (2, 2));
        assert_eq!(write_range(0, -1, 3), (0, 3));
        assert_eq!(write_range(-1, -2, 3), (2, 1));
        assert_eq!(write_range(-9, 0, 3), (0, 0));
    }

    proptest! {
        #[test]
        fn a_read_range_never_leaves_the_file(start: i64, end: i64, count in 0_usize..50) {
            let range = read_range(start, end, count);
            prop_assert!(range.start <= range.end);
            prop_assert!(range.end <= count);
            if end != -1 && count > 0 {
                prop_assert!(!range.is_empty());
            }
        }

        #[test]
        fn a_read_range_inside_the_file_is_taken_as_it_is(
            start in 0_i64..40, length in 1_i64..10,
        ) {
            let range = read_range(start, start + length, 60);
            prop_assert_eq!(range, start as usize..(start + length) as usize);
        }

        #[test]
        fn a_write_range_never_leaves_the_file(start: i64, end: i64, count in 0_usize..50) {
            let (keep, resume) = write_range(start, end, count);
            prop_assert!(keep <= count && resume <= count);
        }
    }
}
