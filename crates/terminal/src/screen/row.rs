//! One line of the screen.
//!
//! Nearly all lines are plain ASCII and are kept as bytes. A line becomes a row of cells when
//! the first other character arrives, and a string when it leaves the screen.

use unicode_width::UnicodeWidthChar;

/// Marks that may hang on one cell; a hostile program could pile up any number.
const MARKS_MAX_BYTES: usize = 64;

/// Memory that goes from a row of the past to a new one; a rare long row is not worth keeping.
const RECYCLED_MAX_BYTES: usize = 1024;

/// The right half of a wide character.
const RIGHT_HALF: char = '\0';

/// One line of the screen.
#[derive(Clone, Debug)]
pub(super) struct Row {
    content: Content,
    /// The next row is the continuation of this one.
    pub(super) wrapped: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Ascii(Vec<u8>),
    Cells(Vec<Cell>),
}

#[derive(Clone, Debug)]
struct Cell {
    character: char,
    /// Combining characters, joiners and selectors that follow it.
    marks: Option<Box<str>>,
}

const BLANK: Cell = Cell {
    character: ' ',
    marks: None,
};

impl Row {
    pub(super) fn new() -> Self {
        Self {
            content: Content::Ascii(Vec::new()),
            wrapped: false,
        }
    }

    /// Columns in use.
    pub(super) fn width(&self) -> usize {
        match &self.content {
            Content::Ascii(bytes) => bytes.len(),
            Content::Cells(cells) => cells.len(),
        }
    }

    /// Writes ASCII text from `column` on, over what is there.
    pub(super) fn write_ascii(&mut self, column: usize, text: &[u8]) {
        match &mut self.content {
            Content::Ascii(bytes) if column == bytes.len() => bytes.extend_from_slice(text),
            Content::Ascii(bytes) => {
                let end = column + text.len();
                if bytes.len() < end {
                    bytes.resize(end, b' ');
                }
                bytes[column..end].copy_from_slice(text);
            }
            Content::Cells(cells) => {
                let end = column + text.len();
                split_wide(cells, column);
                split_wide(cells, end);
                grow(cells, end);
                for (cell, &byte) in cells[column..end].iter_mut().zip(text) {
                    *cell = Cell {
                        character: char::from(byte),
                        marks: None,
                    };
                }
            }
        }
    }

    /// Writes one character of one or two columns at `column`.
    pub(super) fn write_char(&mut self, column: usize, character: char, width: usize) {
        let cells = self.cells();
        let end = column + width;
        split_wide(cells, column);
        split_wide(cells, end);
        grow(cells, end);
        cells[column] = Cell {
            character,
            marks: None,
        };
        for cell in &mut cells[column + 1..end] {
            *cell = Cell {
                character: RIGHT_HALF,
                marks: None,
            };
        }
    }

    /// Hangs a character without width on the one that ends before `column`.
    pub(super) fn write_mark(&mut self, column: usize, mark: char) {
        let cells = self.cells();
        let Some(mut index) = column.checked_sub(1).filter(|&index| index < cells.len()) else {
            return;
        };
        while index > 0 && cells[index].character == RIGHT_HALF {
            index -= 1;
        }
        let marks = cells[index].marks.take().unwrap_or_default();
        let mut marks = String::from(marks);
        if marks.len() + mark.len_utf8() <= MARKS_MAX_BYTES {
            marks.push(mark);
        }
        cells[index].marks = Some(marks.into_boxed_str());
    }

    /// Blanks the columns from `start` up to `end`.
    pub(super) fn erase(&mut self, start: usize, end: usize) {
        let end = end.min(self.width());
        if start >= end {
            return;
        }
        match &mut self.content {
            Content::Ascii(bytes) if end == bytes.len() => bytes.truncate(start),
            Content::Ascii(bytes) => bytes[start..end].fill(b' '),
            Content::Cells(cells) => {
                split_wide(cells, start);
                split_wide(cells, end);
                cells[start..end].fill(BLANK);
                if end == cells.len() {
                    cells.truncate(start);
                }
            }
        }
    }

    /// Shifts what starts at `column` to the right by `count` blanks; what passes `limit` is lost.
    pub(super) fn insert_blanks(&mut self, column: usize, count: usize, limit: usize) {
        if column >= self.width() {
            return;
        }
        let count = count.min(limit.saturating_sub(column));
        match &mut self.content {
            Content::Ascii(bytes) => {
                bytes.splice(column..column, std::iter::repeat_n(b' ', count));
                bytes.truncate(limit);
            }
            Content::Cells(cells) => {
                split_wide(cells, column);
                cells.splice(column..column, std::iter::repeat_n(BLANK, count));
                split_wide(cells, limit);
                cells.truncate(limit);
            }
        }
    }

    /// Takes `count` columns out at `column`; what follows moves left.
    pub(super) fn delete(&mut self, column: usize, count: usize) {
        let end = column.saturating_add(count).min(self.width());
        if column >= end {
            return;
        }
        match &mut self.content {
            Content::Ascii(bytes) => drop(bytes.drain(column..end)),
            Content::Cells(cells) => {
                split_wide(cells, column);
                split_wide(cells, end);
                cells.drain(column..end);
            }
        }
    }

    /// Appends the row's text from `column` on, trailing blanks included.
    pub(super) fn push_text(&self, column: usize, text: &mut String) {
        match &self.content {
            Content::Ascii(bytes) => {
                // The bytes are ASCII by construction; lossy decoding borrows and never fails.
                text.push_str(&String::from_utf8_lossy(
                    bytes.get(column..).unwrap_or_default(),
                ));
            }
            Content::Cells(cells) => {
                for cell in cells.get(column..).unwrap_or_default() {
                    if cell.character != RIGHT_HALF {
                        text.push(cell.character);
                    }
                    text.push_str(cell.marks.as_deref().unwrap_or_default());
                }
            }
        }
    }

    fn cells(&mut self) -> &mut Vec<Cell> {
        if let Content::Ascii(bytes) = &self.content {
            let cell = |&byte: &u8| Cell {
                character: char::from(byte),
                marks: None,
            };
            self.content = Content::Cells(bytes.iter().map(cell).collect());
        }
        match &mut self.content {
            Content::Cells(cells) => cells,
            Content::Ascii(_) => unreachable!("made cells above"),
        }
    }
}

/// Columns that a character takes; control characters take none.
pub(super) fn width_of(character: char) -> usize {
    character.width().unwrap_or(0)
}

fn grow(cells: &mut Vec<Cell>, width: usize) {
    if cells.len() < width {
        cells.resize(width, BLANK);
    }
}

/// Blanks a wide character that straddles the border before `column`.
fn split_wide(cells: &mut [Cell], column: usize) {
    if column > 0
        && cells
            .get(column)
            .is_some_and(|cell| cell.character == RIGHT_HALF)
    {
        cells[column - 1] = BLANK;
        cells[column] = BLANK;
    }
}

/// The most memory that a row which has left the screen holds beyond its text.
const SLACK_MAX_BYTES: usize = 256;

/// A row that has left the screen and cannot change any more.
#[derive(Clone, Debug)]
pub(super) struct PastRow {
    /// UTF-8 text; a plain row's memory is taken over as it is.
    text: Vec<u8>,
    pub(super) wrapped: bool,
}

impl PastRow {
    pub(super) fn new(row: Row) -> Self {
        let wrapped = row.wrapped;
        let mut text = match row.content {
            Content::Ascii(bytes) => bytes,
            Content::Cells(_) => {
                let mut text = String::new();
                row.push_text(0, &mut text);
                text.into_bytes()
            }
        };
        if text.capacity() - text.len() > SLACK_MAX_BYTES {
            text.shrink_to_fit();
        }
        Self { text, wrapped }
    }

    /// An empty row of the screen that uses this one's memory.
    pub(super) fn recycle(self) -> Row {
        let mut bytes = self.text;
        bytes.clear();
        bytes.shrink_to(RECYCLED_MAX_BYTES);
        Row {
            content: Content::Ascii(bytes),
            wrapped: false,
        }
    }

    /// What it counts for. Its memory would be the wrong measure: that depends on how its text
    /// came in pieces, and so would what is kept.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Appends the row's text from `column` on, trailing blanks included.
    pub(super) fn push_text(&self, column: usize, text: &mut String) {
        let own = String::from_utf8_lossy(&self.text);
        let mut skipped = 0;
        let rest = own.char_indices().find(|&(_, character)| {
            let found = skipped >= column;
            skipped += width_of(character);
            found
        });
        text.push_str(rest.map_or("", |(start, _)| &own[start..]));
    }
}
