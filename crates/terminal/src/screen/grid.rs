//! The state of a screen: rows, history, cursor, and what somebody has already seen.

use std::collections::VecDeque;

use super::{
    Limits, Rendered,
    row::{PastRow, Row, width_of},
};
use crate::Size;

/// Answers that wait to be typed back; a program that asks without reading gets no more.
const REPLIES_MAX_BYTES: usize = 1024;

/// Distance of tab stops.
const TAB: usize = 8;

/// The screen proper, with its history.
#[derive(Debug)]
pub(super) struct Grid {
    columns: usize,
    height: usize,
    limits: Limits,
    past: VecDeque<PastRow>,
    past_bytes: usize,
    /// Rows that have left `past`, so that a row keeps its number whatever is forgotten.
    dropped: u64,
    /// Rows left `past` because it was full, and not because a program erased it.
    overflowed: bool,
    /// The rows in use, from the top of the screen; grows up to `height`.
    rows: VecDeque<Row>,
    pub(super) cursor: Cursor,
    saved_cursor: Cursor,
    /// First and last row that scroll.
    region: (usize, usize),
    pub(super) autowrap: bool,
    pub(super) line_drawing: bool,
    /// The ordinary screen, while a program shows the alternate one.
    hidden: Option<Hidden>,
    seen: Seen,
    replies: Vec<u8>,
}

/// Where the next character goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
    /// The last column was written; the next character goes to the next row.
    wraps: bool,
}

#[derive(Debug)]
struct Hidden {
    rows: VecDeque<Row>,
    cursor: Cursor,
}

/// What somebody has seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// Nothing.
    Nothing,
    /// All before this place, given that no row from `changed` on was written to since.
    Until {
        row: u64,
        column: usize,
        changed: Option<u64>,
    },
}

impl Grid {
    pub(super) fn new(size: Size, limits: Limits) -> Self {
        let (columns, height) = (
            usize::from(size.columns.max(1)),
            usize::from(size.rows.max(1)),
        );
        Self {
            columns,
            height,
            limits,
            past: VecDeque::new(),
            past_bytes: 0,
            dropped: 0,
            overflowed: false,
            rows: VecDeque::from([Row::new()]),
            cursor: Cursor::default(),
            saved_cursor: Cursor::default(),
            region: (0, height - 1),
            autowrap: true,
            line_drawing: false,
            hidden: None,
            seen: Seen::Nothing,
            replies: Vec::new(),
        }
    }

    pub(super) fn size(&self) -> Size {
        let clamp = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        Size {
            columns: clamp(self.columns),
            rows: clamp(self.height),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.columns = usize::from(size.columns.max(1));
        self.height = usize::from(size.rows.max(1));
        self.region = (0, self.height - 1);
        while self.rows.len() > self.height {
            self.push_top_row_to_past();
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
        // The cursor may stand below the rows in use.
        self.cursor.row = self.cursor.row.min(self.height - 1);
        self.cursor.column = self.cursor.column.min(self.columns - 1);
    }

    // Writing.

    pub(super) fn print_ascii(&mut self, mut text: &[u8]) {
        if self.line_drawing {
            for &byte in text {
                self.print(char::from(byte));
            }
            return;
        }
        while !text.is_empty() {
            self.wrap_if_due();
            let Cursor { row, column, .. } = self.cursor;
            let (now, later) = text.split_at(text.len().min(self.columns - column));
            self.row_at(row, column).write_ascii(column, now);
            self.advance(now.len());
            text = later;
        }
    }

    pub(super) fn print(&mut self, character: char) {
        let character = if self.line_drawing {
            line_drawing(character)
        } else {
            character
        };
        let width = width_of(character).min(self.columns);
        if width == 0 {
            let Cursor { row, column, wraps } = self.cursor;
            let end = column + usize::from(wraps);
            self.row_at(row, column).write_mark(end, character);
            return;
        }
        self.wrap_if_due();
        if self.cursor.column + width > self.columns {
            self.cursor.wraps = true;
            self.wrap_if_due();
        }
        let column = self.cursor.column.min(self.columns - width);
        self.row_at(self.cursor.row, column)
            .write_char(column, character, width);
        self.cursor.column = column;
        self.advance(width);
    }

    fn advance(&mut self, width: usize) {
        self.cursor.column += width;
        if self.cursor.column >= self.columns {
            self.cursor.column = self.columns - 1;
            self.cursor.wraps = self.autowrap;
        }
    }

    fn wrap_if_due(&mut self) {
        if std::mem::take(&mut self.cursor.wraps) && self.autowrap {
            let row = self.cursor.row;
            self.row_at(row, self.columns).wrapped = true;
            self.line_feed();
            self.cursor.column = 0;
        }
    }

    /// One of the control characters below the blank.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            b'\r' => self.move_to_column(0),
            b'\n' | 0x0b | 0x0c => self.line_feed(),
            b'\t' => self.tab_forward(1),
            0x08 => self.move_to_column(self.cursor.column.saturating_sub(1)),
            _ => {}
        }
    }

    // Moving.

    pub(super) fn move_to(&mut self, row: usize, column: usize) {
        self.cursor.row = row.min(self.height - 1);
        self.move_to_column(column);
    }

    pub(super) fn move_to_column(&mut self, column: usize) {
        self.cursor.column = column.min(self.columns - 1);
        self.cursor.wraps = false;
    }

    pub(super) fn tab_forward(&mut self, count: usize) {
        let stop = (self.cursor.column / TAB)
            .saturating_add(count)
            .saturating_mul(TAB);
        self.move_to_column(stop);
    }

    pub(super) fn tab_backward(&mut self, count: usize) {
        let stop = self.cursor.column.div_ceil(TAB).saturating_sub(count) * TAB;
        self.move_to_column(stop);
    }

    pub(super) fn save_cursor(&mut self) {
        self.saved_cursor = self.cursor;
    }

    pub(super) fn restore_cursor(&mut self) {
        self.move_to(self.saved_cursor.row, self.saved_cursor.column);
    }

    pub(super) fn line_feed(&mut self) {
        self.cursor.wraps = false;
        if self.cursor.row == self.region.1 {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.height {
            self.cursor.row += 1;
        }
    }

    pub(super) fn reverse_line_feed(&mut self) {
        self.cursor.wraps = false;
        if self.cursor.row == self.region.0 {
            self.scroll_down(1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    // Scrolling and erasing.

    /// Sets the rows that scroll, counted from 1; zero or nonsense means all.
    pub(super) fn set_region(&mut self, top: usize, bottom: usize) {
        let bottom = if bottom == 0 {
            self.height
        } else {
            bottom.min(self.height)
        };
        let top = top.max(1);
        self.region = if top < bottom {
            (top - 1, bottom - 1)
        } else {
            (0, self.height - 1)
        };
        self.move_to(0, 0);
    }

    pub(super) fn scroll_up(&mut self, count: usize) {
        let (top, bottom) = self.region;
        let count = count.min(bottom - top + 1);
        if top > 0 {
            return self.shift_up(top, count);
        }
        // What leaves at the top of the screen is history, also above a fixed status line.
        for _ in 0..count {
            self.fill_rows(bottom + 1);
            let fresh = self.push_top_row_to_past();
            self.rows.insert(bottom, fresh);
        }
    }

    pub(super) fn scroll_down(&mut self, count: usize) {
        self.shift_down(self.region.0, count);
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        self.shift_down(self.cursor.row, count);
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        self.shift_up(self.cursor.row, count);
    }

    /// Makes room for `count` empty rows at `at`; as many fall out of the region below.
    fn shift_down(&mut self, at: usize, count: usize) {
        if let Some(rows) = self.region_from(at) {
            let count = count.min(rows.len());
            rows.rotate_right(count);
            rows[..count].fill_with(Row::new);
        }
    }

    /// Takes `count` rows out at `at`; as many empty ones come into the region from below.
    fn shift_up(&mut self, at: usize, count: usize) {
        if let Some(rows) = self.region_from(at) {
            let count = count.min(rows.len());
            rows.rotate_left(count);
            let kept = rows.len() - count;
            rows[kept..].fill_with(Row::new);
        }
    }

    /// The rows from `at` to the end of the region, about to be moved; none outside of it.
    fn region_from(&mut self, at: usize) -> Option<&mut [Row]> {
        let (top, bottom) = self.region;
        if !(top..=bottom).contains(&at) {
            return None;
        }
        self.fill_rows(bottom + 1);
        // A row and its continuation do not stay neighbours.
        if let Some(above) = at.checked_sub(1) {
            self.rows[above].wrapped = false;
        }
        self.note_change(at, 0);
        Some(&mut self.rows.make_contiguous()[at..=bottom])
    }

    pub(super) fn erase_in_row(&mut self, start: usize, end: usize) {
        let row = self.cursor.row;
        let erased = self.row_at(row, start);
        erased.erase(start, end);
        erased.wrapped &= end < usize::MAX;
    }

    pub(super) fn erase_rows(&mut self, start: usize, end: usize) {
        for row in start..end.min(self.rows.len()) {
            *self.row_at(row, 0) = Row::new();
        }
    }

    /// Clears the screen; what was on it is gone, as on a real one.
    pub(super) fn erase_screen(&mut self) {
        self.erase_rows(0, self.height);
        self.rows.truncate(self.cursor.row + 1);
    }

    pub(super) fn erase_past(&mut self) {
        self.dropped += self.past.len() as u64;
        self.overflowed = false;
        self.past.clear();
        self.past_bytes = 0;
    }

    pub(super) fn insert_blanks(&mut self, count: usize) {
        let (Cursor { row, column, .. }, columns) = (self.cursor, self.columns);
        self.row_at(row, column)
            .insert_blanks(column, count, columns);
    }

    pub(super) fn delete_columns(&mut self, count: usize) {
        let Cursor { row, column, .. } = self.cursor;
        self.row_at(row, column).delete(column, count);
    }

    /// Switches to the alternate screen, which has no history.
    pub(super) fn show_alternate(&mut self) {
        if self.hidden.is_none() {
            let rows = std::mem::replace(&mut self.rows, VecDeque::from([Row::new()]));
            self.hidden = Some(Hidden {
                rows,
                cursor: self.cursor,
            });
            self.seen = Seen::Nothing;
            self.move_to(0, 0);
        }
    }

    pub(super) fn show_ordinary(&mut self) {
        if let Some(hidden) = self.hidden.take() {
            self.rows = hidden.rows;
            self.cursor = hidden.cursor;
            self.seen = Seen::Nothing;
            self.region = (0, self.height - 1);
            self.resize(self.size());
        }
    }

    /// Puts modes, margins and content back to what a new terminal has.
    pub(super) fn reset(&mut self) {
        self.show_ordinary();
        self.erase_screen();
        self.region = (0, self.height - 1);
        (self.autowrap, self.line_drawing) = (true, false);
        self.move_to(0, 0);
    }

    pub(super) fn reply(&mut self, answer: &str) {
        if self.replies.len() + answer.len() <= REPLIES_MAX_BYTES {
            self.replies.extend_from_slice(answer.as_bytes());
        }
    }

    pub(super) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    // Rows.

    /// The row to be written to from `column` on, made when it is not there yet.
    fn row_at(&mut self, row: usize, column: usize) -> &mut Row {
        self.note_change(row, column);
        self.fill_rows(row + 1);
        &mut self.rows[row]
    }

    fn fill_rows(&mut self, count: usize) {
        while self.rows.len() < count {
            self.rows.push_back(Row::new());
        }
    }

    /// Moves the top row out of sight and returns an empty one in exchange.
    fn push_top_row_to_past(&mut self) -> Row {
        let Some(row) = self.rows.pop_front() else {
            return Row::new();
        };
        if self.hidden.is_some() {
            // No history: all rows move under the numbers that somebody saw them by.
            self.note_change(0, 0);
            return PastRow::new(row).recycle();
        }
        let row = PastRow::new(row);
        self.past_bytes += row.bytes();
        self.past.push_back(row);
        let mut recycled = None;
        while self.past.len() + self.height > self.limits.lines.max(self.height)
            || self.past_bytes > self.limits.history_bytes
        {
            let Some(oldest) = self.past.pop_front() else {
                break;
            };
            self.past_bytes -= oldest.bytes();
            self.dropped += 1;
            self.overflowed = true;
            recycled = Some(oldest);
        }
        recycled.map_or_else(Row::new, PastRow::recycle)
    }

    // Text.

    /// The number of the screen's top row, counted from the first row there ever was.
    fn top(&self) -> u64 {
        self.dropped + self.past.len() as u64
    }

    fn note_change(&mut self, row: usize, column: usize) {
        let number = self.top() + row as u64;
        if let Seen::Until {
            row,
            column: seen_column,
            changed,
        } = &mut self.seen
            && (number < *row || (number == *row && column < *seen_column))
        {
            *changed = Some(changed.map_or(number, |earlier| earlier.min(number)));
        }
    }

    pub(super) fn mark_seen(&mut self) {
        let last = self.rows.len().saturating_sub(1);
        let end_of_text = (last, self.rows.get(last).map_or(0, Row::width));
        // The next output starts at the cursor, which may stand below the rows in use.
        let (row, column) = end_of_text.max((self.cursor.row, self.cursor.column));
        self.seen = Seen::Until {
            row: self.top() + row as u64,
            column,
            changed: None,
        };
    }

    pub(super) fn text(&self) -> Rendered {
        self.text_from(0, 0)
    }

    pub(super) fn unseen(&self) -> Rendered {
        match self.seen {
            Seen::Nothing => self.text(),
            Seen::Until {
                changed: Some(row), ..
            } => self.text_from(row, 0),
            Seen::Until {
                row,
                column,
                changed: None,
            } => self.text_from(row, column),
        }
    }

    fn text_from(&self, row: u64, column: usize) -> Rendered {
        let truncated = row < self.dropped && self.overflowed;
        let skip = usize::try_from(row.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let mut column = if row < self.dropped { 0 } else { column };
        let mut out = Lines::default();
        // The alternate screen stands alone.
        if self.hidden.is_none() {
            for past in self.past.iter().skip(skip) {
                past.push_text(std::mem::take(&mut column), &mut out.text);
                out.end_row(past.wrapped);
            }
        }
        for row in self.rows.iter().skip(skip.saturating_sub(self.past.len())) {
            row.push_text(std::mem::take(&mut column), &mut out.text);
            out.end_row(row.wrapped);
        }
        let (text, lines) = out.finish();
        Rendered {
            text,
            lines,
            truncated,
        }
    }
}

/// Joins rows to lines.
#[derive(Default)]
struct Lines {
    text: String,
    lines: usize,
}

impl Lines {
    fn end_row(&mut self, wrapped: bool) {
        if !wrapped {
            let trimmed = self.text.trim_end_matches([' ', '\t']).len();
            self.text.truncate(trimmed);
            self.text.push('\n');
            self.lines += 1;
        }
    }

    /// Blank lines at the end were never written to, or are not worth showing.
    fn finish(mut self) -> (String, usize) {
        let trimmed = self.text.trim_end();
        let blank = self.text[trimmed.len()..].matches('\n').count();
        self.lines -= blank.saturating_sub(1).min(self.lines);
        let length = trimmed.len();
        self.text.truncate(length);
        (self.text, self.lines)
    }
}

/// The graphics that a terminal shows for letters while line drawing is on.
fn line_drawing(character: char) -> char {
    match character {
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'q' => '─',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'a' => '▒',
        '`' => '◆',
        'f' => '°',
        'g' => '±',
        '~' => '·',
        other => other,
    }
}
