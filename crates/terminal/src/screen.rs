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

/// Where the byte stream stands.
struct ParserState {
    /// Gets escape sequences only, because it loses characters that are cut between chunks.
    vte: Parser,
    position: Position,
    /// The bytes of a character whose end has not come yet.
    unfinished: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Outside of escape sequences.
    Text,
    /// The last byte was an escape, or one that does not end an escape sequence's start.
    Escape,
    /// Inside a control sequence, which ends with a letter or the like.
    Control,
    /// Inside another sequence; the parser tells when it ends.
    Other,
}

impl std::fmt::Debug for ParserState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ParserState")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

const ESCAPE: u8 = 0x1b;

impl ParserState {
    fn new() -> Self {
        Self {
            vte: Parser::new(),
            position: Position::Text,
            unfinished: Vec::new(),
        }
    }
}

impl Screen {
    /// An empty screen.
    pub fn new(size: Size, limits: Limits) -> Self {
        Self {
            grid: Grid::new(size, limits),
            parser: ParserState::new(),
        }
    }

    /// Takes in what programs wrote. Chunks may be cut anywhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            let taken = match self.parser.position {
                Position::Text => self.feed_text(bytes),
                _ => self.feed_sequence(first),
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
        self.parser = ParserState::new();
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
        if !bytes[0].is_ascii() || !self.parser.unfinished.is_empty() {
            return self.feed_characters(bytes);
        }
        let printable = bytes
            .iter()
            .position(|byte| !(0x20..0x7f).contains(byte))
            .unwrap_or(bytes.len());
        if printable > 0 {
            self.grid.print_ascii(&bytes[..printable]);
            return printable;
        }
        match bytes[0] {
            ESCAPE => self.feed_sequence(ESCAPE),
            control => {
                self.grid.control(control);
                1
            }
        }
    }

    /// Takes in everything up to the next ASCII character; what is no UTF-8 shows as such.
    fn feed_characters(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.iter().position(u8::is_ascii).unwrap_or(bytes.len());
        let may_go_on = length == bytes.len();
        let mut joined = std::mem::take(&mut self.parser.unfinished);
        let text = if joined.is_empty() {
            &bytes[..length]
        } else {
            joined.extend_from_slice(&bytes[..length]);
            &joined
        };
        let mut chunks = text.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            for character in chunk
                .valid()
                .chars()
                .filter(|character| !character.is_control())
            {
                self.grid.print(character);
            }
            let invalid = chunk.invalid();
            if may_go_on && chunks.peek().is_none() && is_unfinished(invalid) {
                self.parser.unfinished = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.grid.print(char::REPLACEMENT_CHARACTER);
            }
        }
        length
    }

    /// Hands one byte of an escape sequence to the parser.
    fn feed_sequence(&mut self, byte: u8) -> usize {
        use Position::{Control, Escape, Other, Text};
        // No sequence holds other bytes; some strings do, and they are ignored.
        if byte.is_ascii() {
            let mut performer = Performer::new(&mut self.grid);
            self.parser.vte.advance(&mut performer, &[byte]);
            self.parser.position = match (self.parser.position, byte) {
                _ if performer.left_sequence() => Text,
                (_, ESCAPE) => Escape,
                (Escape, b'[') => Control,
                (Escape, 0x20..=0x7e) => Other,
                // The parser does not tell of the end of a sequence that makes no sense.
                (Control, 0x40..=0x7e) => Text,
                (position, _) => position,
            };
        }
        1
    }
}

/// More bytes could make a character of these.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[path = "screen/screen_tests.rs"]
mod screen_tests;
