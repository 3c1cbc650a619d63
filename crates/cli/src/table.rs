//! Rows of text in columns, and the numbers that stand in them.

use std::{borrow::Cow, time::Duration};

use crate::say::printable_line;

/// Puts rows below their headings. The last column is as wide as it likes. Cells may hold what
/// others wrote: each stays one cell of one line.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    painted_table(headings, rows, |_, cell| cell)
}

/// The same with cells set off by `paint`, which gets the number of the column and the cell with
/// its padding, and adds nothing that takes room.
pub(crate) fn painted_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
    paint: impl Fn(usize, String) -> String,
) -> String {
    let rows: Vec<[Cow<'_, str>; N]> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| printable_line(cell)))
        .collect();
    let mut widths = headings.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N], paint: &dyn Fn(usize, String) -> String| {
        let cells = cells.iter().zip(widths).enumerate();
        let padded: Vec<String> = cells
            .map(|(column, (cell, width))| paint(column, format!("{cell:width$}")))
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let rows = rows.iter().map(|row| row.each_ref().map(AsRef::as_ref));
    let rows = rows.map(|row| line(row, &paint));
    let first = line(headings, &|_, heading| heading);
    std::iter::once(first).chain(rows).collect()
}

/// How long ago, in the largest unit of which there are at least two.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [("d", 24 * 60 * 60), ("h", 60 * 60), ("min", 60)];
    let fitting = units.iter().find(|(_, length)| seconds >= 2 * length);
    match fitting {
        Some((unit, length)) => format!("{} {unit}", seconds / length),
        None => format!("{seconds} s"),
    }
}

/// Bytes in the largest unit that leaves a whole one.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let fitting = units.iter().find(|(_, length)| bytes >= *length);
    match fitting {
        // A tenth is all that a person looks at.
        Some((unit, length)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*length);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["é".to_owned(), "long".to_owned()],
            ["wider".to_owned(), String::new()],
        ];
        assert_eq!(table(["A", "B"], &rows), "A      B\né      long\nwider\n");
    }

    #[test]
    fn a_cell_stays_a_cell_whatever_is_in_it() {
        let rows = [["a\nFAKE  row\u{1b}[2J".to_owned(), "b".to_owned()]];
        let shown = table(["NAME", "ID"], &rows);
        let expected = "NAME                   ID\na\\nFAKE  row\\u{1b}[2J  b\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn ages_and_sizes_are_told_in_one_unit() {
        let ages = [0, 119, 120, 7199, 7200, 172_799, 172_800];
        let ages = ages.map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(
            ages,
            ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]
        );
        let sizes = [0, 1023, 1024, 1536, 3 << 30, u64::MAX].map(size);
        assert_eq!(
            sizes[..5],
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "3.0 GiB"]
        );
        assert_eq!(sizes[5], "17179869183.9 GiB");
    }
}
