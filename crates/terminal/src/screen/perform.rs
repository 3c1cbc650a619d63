//! Escape sequences, applied to a grid.

use vte::{Params, Perform};

use super::grid::Grid;

/// A terminal that knows cursor moves, erasing and colours; what `CSI c` asks for.
const DEVICE_ATTRIBUTES: &str = "\x1b[?6c";

/// Cancel and substitute: a sequence ends here without effect.
const CANCEL: [u8; 2] = [0x18, 0x1a];

/// Applies what the parser finds to a grid.
pub(super) struct Performer<'a> {
    grid: &'a mut Grid,
    left_sequence: bool,
}

impl<'a> Performer<'a> {
    pub(super) fn new(grid: &'a mut Grid) -> Self {
        Self {
            grid,
            left_sequence: false,
        }
    }

    /// A sequence has just ended, and the parser stands between characters.
    pub(super) fn left_sequence(&self) -> bool {
        self.left_sequence
    }

    fn set_private_mode(&mut self, mode: u16, on: bool) {
        match (mode, on) {
            (7, on) => self.grid.autowrap = on,
            (47 | 1047 | 1049, true) => self.grid.show_alternate(),
            (47 | 1047 | 1049, false) => self.grid.show_ordinary(),
            (1048, true) => self.grid.save_cursor(),
            (1048, false) => self.grid.restore_cursor(),
            _ => {}
        }
    }

    fn move_cursor(&mut self, action: char, count: usize) {
        let (row, column) = (self.grid.cursor.row, self.grid.cursor.column);
        match action {
            'A' => self.grid.move_to(row.saturating_sub(count), column),
            'B' | 'e' => self.grid.move_to(row.saturating_add(count), column),
            'C' | 'a' => self.grid.move_to_column(column.saturating_add(count)),
            'D' => self.grid.move_to_column(column.saturating_sub(count)),
            'E' => self.grid.move_to(row.saturating_add(count), 0),
            'F' => self.grid.move_to(row.saturating_sub(count), 0),
            'G' | '`' => self.grid.move_to_column(count - 1),
            'd' => self.grid.move_to(count - 1, column),
            'I' => self.grid.tab_forward(count),
            _ => self.grid.tab_backward(count),
        }
    }

    fn erase_display(&mut self, what: usize) {
        let (row, column) = (self.grid.cursor.row, self.grid.cursor.column);
        match what {
            0 => {
                self.grid.erase_in_row(column, usize::MAX);
                self.grid.erase_rows(row + 1, usize::MAX);
            }
            1 => {
                self.grid.erase_rows(0, row);
                self.grid.erase_in_row(0, column + 1);
            }
            2 => self.grid.erase_screen(),
            3 => self.grid.erase_past(),
            _ => {}
        }
    }

    fn erase_line(&mut self, what: usize) {
        let column = self.grid.cursor.column;
        match what {
            0 => self.grid.erase_in_row(column, usize::MAX),
            1 => self.grid.erase_in_row(0, column + 1),
            2 => self.grid.erase_in_row(0, usize::MAX),
            _ => {}
        }
    }

    fn report(&mut self, what: usize) {
        match what {
            5 => self.grid.reply("\x1b[0n"),
            6 => {
                let (row, column) = (self.grid.cursor.row + 1, self.grid.cursor.column + 1);
                self.grid.reply(&format!("\x1b[{row};{column}R"));
            }
            _ => {}
        }
    }
}

impl Perform for Performer<'_> {
    fn execute(&mut self, byte: u8) {
        self.left_sequence |= CANCEL.contains(&byte);
        self.grid.control(byte);
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        self.left_sequence = true;
        let numbers: Vec<usize> = params
            .iter()
            .map(|group| usize::from(group.first().copied().unwrap_or(0)))
            .collect();
        let number = |index: usize| numbers.get(index).copied().unwrap_or(0);
        let count = number(0).max(1);
        match (intermediates, action) {
            ([b'?'], 'h' | 'l') => {
                for &mode in &numbers {
                    self.set_private_mode(u16::try_from(mode).unwrap_or(0), action == 'h');
                }
            }
            ([], 'A'..='G' | 'I' | 'Z' | '`' | 'a' | 'd' | 'e') => self.move_cursor(action, count),
            ([], 'H' | 'f') => self.grid.move_to(count - 1, number(1).max(1) - 1),
            ([], 'J') => self.erase_display(number(0)),
            ([], 'K') => self.erase_line(number(0)),
            ([], 'L') => self.grid.insert_rows(count),
            ([], 'M') => self.grid.delete_rows(count),
            ([], 'P') => self.grid.delete_columns(count),
            ([], '@') => self.grid.insert_blanks(count),
            ([], 'X') => {
                let column = self.grid.cursor.column;
                self.grid.erase_in_row(column, column.saturating_add(count));
            }
            ([], 'S') => self.grid.scroll_up(count),
            ([], 'T') => self.grid.scroll_down(count),
            ([], 'r') => self.grid.set_region(number(0), number(1)),
            ([], 's') => self.grid.save_cursor(),
            ([], 'u') => self.grid.restore_cursor(),
            ([], 'n') => self.report(number(0)),
            ([], 'c') if number(0) == 0 => self.grid.reply(DEVICE_ATTRIBUTES),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.left_sequence = true;
        match (intermediates, byte) {
            ([], b'7') => self.grid.save_cursor(),
            ([], b'8') => self.grid.restore_cursor(),
            ([], b'D') => self.grid.line_feed(),
            ([], b'E') => {
                self.grid.line_feed();
                self.grid.move_to_column(0);
            }
            ([], b'M') => self.grid.reverse_line_feed(),
            ([], b'c') => self.grid.reset(),
            ([b'('], charset) => self.grid.line_drawing = charset == b'0',
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], bell_terminated: bool) {
        // Ended by ESC \, the backslash is still to come and arrives as `esc_dispatch`.
        self.left_sequence |= bell_terminated;
    }
}
