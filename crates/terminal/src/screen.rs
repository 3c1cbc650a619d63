//! What a person would see: a screen with its history, fed with the bytes that programs write.
//!
//! Plain text, which is nearly all there ever is, takes a short way past the escape-sequence
//! parser (`vte`), so that rendering keeps up with a terminal that writes at full speed.
//! Memory is bounded by [`Limits`] whatever arrives. Colours and styles are dropped; title,
//! clipboard and other operating-system commands are ignored.

mod grid;
mod perform;
mod row;

use grid::Grid;
use perform::Performer;
use vte::Parser;

use crate::Size;

/// How much of what scrolled away is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines kept in all, those on the screen included.
    pub lines: usize,
    /// Bytes of text kept in lines that have left the screen.
    pub history_bytes: usize,
}

/// Text taken from a screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Lines without trailing blanks, joined by newlines; wrapped lines are whole again.
    pub text: String,
    /// How many lines that is.
    pub lines: usize,
    /// Lines before these were dropped because the history is full.
    pub truncated: bool,
}

/// A terminal's screen and history.
#[derive(Debug)]
pub struct Screen {
    grid: Grid,
    parser: ParserState,
}

/// Where the byte stream stands; decides whether the short way may be taken.
struct ParserState {
    vte: Parser,
    position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Between characters: the short way is open.
    Text,
    /// Inside a character of several bytes.
    Character,
    /// Inside an escape sequence, or the parser has not yet shown that it left one.
    Sequence,
}

impl std::fmt::Debug for ParserState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ParserState").field("position", &self.position).finish_non_exhaustive()
    }
}

const ESCAPE: u8 = 0x1b;

impl Screen {
    /// An empty screen.
    pub fn new(size: Size, limits: Limits) -> Self {
        let parser = ParserState { vte: Parser::new(), position: Position::Text };
        Self { grid: Grid::new(size, limits), parser }
    }

    /// Takes in what programs wrote. Chunks may be cut anywhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = match self.parser.position {
                Position::Text => self.feed_text(bytes),
                Position::Character => self.feed_characters(bytes),
                Position::Sequence => self.feed_sequence(bytes),
            };
            bytes = &bytes[taken..];
        }
    }

    /// All the text that is kept.
    pub fn text(&self) -> Rendered {
        self.grid.text()
    }

    /// The text that came or changed since [`Screen::mark_seen`]; everything when there was
    /// no such call, or when the screen was switched or cleared since.
    pub fn unseen(&self) -> Rendered {
        self.grid.unseen()
    }

    /// Remembers that somebody has seen what there is now.
    pub fn mark_seen(&mut self) {
        self.grid.mark_seen();
    }

    /// Forgets everything, history included, and puts the cursor home.
    pub fn clear(&mut self) {
        self.grid = Grid::new(self.grid.size(), self.grid.limits());
        self.parser.position = Position::Text;
        self.parser.vte = Parser::new();
    }

    /// Gives the screen another size. Lines are not wrapped anew.
    pub fn resize(&mut self, size: Size) {
        self.grid.resize(size);
    }

    /// What the terminal has to answer to programs that asked it something.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.grid.take_replies()
    }

    fn feed_text(&mut self, bytes: &[u8]) -> usize {
        let printable = bytes.iter().position(|byte| !(0x20..0x7f).contains(byte)).unwrap_or(bytes.len());
        if printable > 0 {
            self.grid.print_ascii(&bytes[..printable]);
            return printable;
        }
        match bytes[0] {
            ESCAPE => {
                self.parser.position = Position::Sequence;
                0
            }
            0x80.. => self.feed_characters(bytes),
            control => {
                self.grid.control(control);
                1
            }
        }
    }

    /// Hands everything up to the next escape to the parser, which decodes it as UTF-8.
    fn feed_characters(&mut self, bytes: &[u8]) -> usize {
        let length = memchr::memchr(ESCAPE, bytes).unwrap_or(bytes.len());
        if length == 0 {
            self.parser.position = Position::Sequence;
            return 0;
        }
        self.parser.vte.advance(&mut Performer::new(&mut self.grid), &bytes[..length]);
        let whole = bytes[..length].last().is_some_and(u8::is_ascii);
        self.parser.position = if whole { Position::Text } else { Position::Character };
        length
    }

    fn feed_sequence(&mut self, bytes: &[u8]) -> usize {
        let mut performer = Performer::new(&mut self.grid);
        let taken = self.parser.vte.advance_until_terminated(&mut performer, bytes);
        if performer.left_sequence() {
            self.parser.position = Position::Text;
        }
        taken
    }
}

#[cfg(test)]
#[path = "screen/screen_tests.rs"]
mod screen_tests;
