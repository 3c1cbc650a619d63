//! From a byte offset to the line and column that people count.

/// The starts of a text's lines, so that many offsets can be looked up in it.
#[derive(Debug)]
pub(super) struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(offset, _)| offset + 1);
        let starts = std::iter::once(0).chain(after_newlines).collect();
        Self { text, starts }
    }

    /// Line and column of an offset, both from 1; the column counts characters.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self
            .starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let before = self.text.get(start..offset).unwrap_or_default();
        (line, before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns_of_characters() {
        let text = "a = 1\nß = 2\n\nend";
        let lines = LineIndex::new(text);
        let check = |needle: &str, expected: (usize, usize)| {
            assert_eq!(
                lines.position(text.find(needle).unwrap()),
                expected,
                "{needle}"
            );
        };
        check("a", (1, 1));
        check("1", (1, 5));
        check("2", (2, 5));
        check("end", (4, 1));
        assert_eq!(lines.position(text.len()), (4, 4));
    }
}
