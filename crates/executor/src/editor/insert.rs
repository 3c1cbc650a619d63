//! Where `insert` works: after a line.

use super::refusal::Refusal;

/// What `insert` will do to a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    /// Byte offset of the new text.
    pub(super) at: usize,
    pub(super) with: String,
    /// How many lines are put in.
    pub(super) lines: usize,
    /// How many lines the text has before.
    pub(super) count: usize,
    /// The line after which they stand.
    pub(super) after: usize,
}

/// Puts every line of `new` after line `after`, each with a newline.
pub(super) fn plan(text: &str, after: i64, new: &str) -> Result<Insertion, Refusal> {
    let count = text.split_inclusive('\n').count();
    let outside = Refusal::InsertLineOutside { line: after, count };
    let after = usize::try_from(after)
        .ok()
        .filter(|line| *line <= count)
        .ok_or(outside)?;
    let at: usize = text.split_inclusive('\n').take(after).map(str::len).sum();
    // A last line without a newline must not grow together with the new one.
    let seam = if at > 0 && !text[..at].ends_with('\n') {
        "\n"
    } else {
        ""
    };
    Ok(Insertion {
        at,
        with: format!("{seam}{new}\n"),
        lines: new.split('\n').count(),
        count,
        after,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inserted(text: &str, after: i64, new: &str) -> String {
        let insertion = plan(text, after, new).unwrap();
        let mut out = text.to_owned();
        out.insert_str(insertion.at, &insertion.with);
        out
    }

    #[test]
    fn lines_go_after_the_line_that_is_named() {
        assert_eq!(inserted("a\nb\n", 0, "x"), "x\na\nb\n");
        assert_eq!(inserted("a\nb\n", 1, "x\ny"), "a\nx\ny\nb\n");
        assert_eq!(inserted("a\nb\n", 2, ""), "a\nb\n\n");
        assert_eq!(inserted("", 0, "x"), "x\n");
    }

    #[test]
    fn a_last_line_without_newline_gets_one() {
        assert_eq!(inserted("a\nb", 2, "x"), "a\nb\nx\n");
        assert_eq!(inserted("a\nb", 1, "x"), "a\nx\nb");
    }

    #[test]
    fn lines_outside_of_the_file_are_refused() {
        let check = |line| {
            assert_eq!(
                plan("a\nb\n", line, "x"),
                Err(Refusal::InsertLineOutside { line, count: 2 })
            );
        };
        check(3);
        check(-1);
        check(i64::MAX);
    }

    proptest! {
        #[test]
        fn inserted_lines_stand_where_they_were_asked_for(
            lines in proptest::collection::vec("[ab]{0,3}", 1..12),
            new in proptest::collection::vec("[xy]{0,3}", 1..5),
            after in 0_usize..12,
        ) {
            let after = after.min(lines.len());
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let result = inserted(&text, after as i64, &new.join("\n"));
            let mut expected = lines.clone();
            expected.splice(after..after, new.clone());
            let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(result, expected);
        }
    }
}
