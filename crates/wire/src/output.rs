//! A command while it runs: pieces of its output by offset, and its end before its time, as both
//! ends understand them.
//!
//! A reader asks for what an action has written from an offset on and gets it as soon as there is
//! any. Nothing is pushed, so a slow reader holds up neither the command nor other readers, and a
//! reader whose connection broke goes on at its last offset.

use std::time::Duration;

use bytes::Bytes;

/// The longest that one request may wait for output. A reader that wants more asks again.
pub const OUTPUT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Bytes of one piece: many make a request worth its while, few keep a reader's memory small.
pub const OUTPUT_PIECE_BYTES_MAX: usize = 256 * 1024;

/// Asks for the output of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRequest {
    /// The name under which the action runs at most once.
    pub action: String,
    /// How many bytes of it the reader has.
    pub from: u64,
    /// How long to wait while there is nothing new.
    pub wait: Duration,
}

/// Some of the output of an action, exactly as the terminal was given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPiece {
    /// The bytes.
    pub bytes: Bytes,
    /// Where to go on. Further than the bytes reach when what lies between was not kept.
    pub next: u64,
    /// What the executor knows of the action.
    pub state: OutputState,
}

/// What an executor knows of an action whose output is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// It has not begun, runs no command, or is too long ago.
    Unknown,
    /// There may be more.
    Running,
    /// There is no more beyond `next`.
    Ended,
}

/// Asks for an action to come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// The name under which the action runs at most once.
    pub action: String,
    /// By what means.
    pub means: StopMeans,
}

/// How a command is brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMeans {
    /// Ctrl-C at its terminal; a program may take no notice.
    Interrupt,
    /// Its shell and everything in the shell's session is killed; a shell with a name starts anew.
    Kill,
}

impl StopMeans {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Kill => "kill",
        }
    }

    /// What a word on the wire means.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Interrupt, Self::Kill];
        all.into_iter().find(|means| means.as_str() == word)
    }
}

impl OutputState {
    const WORDS: [(Self, &'static str); 3] = [
        (Self::Unknown, "unknown"),
        (Self::Running, "running"),
        (Self::Ended, "ended"),
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(state, _)| *state == self);
        found.map_or("unknown", |(_, word)| word)
    }

    /// What a word on the wire means.
    pub fn parse(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(state, _)| *state)
    }
}

impl OutputPiece {
    /// No output, at the offset of the reader.
    pub fn empty(from: u64, state: OutputState) -> Self {
        Self {
            bytes: Bytes::new(),
            next: from,
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back() {
        for state in [
            OutputState::Unknown,
            OutputState::Running,
            OutputState::Ended,
        ] {
            assert_eq!(OutputState::parse(state.as_str()), Some(state));
        }
        assert_eq!(OutputState::parse("over"), None);
        for means in [StopMeans::Interrupt, StopMeans::Kill] {
            assert_eq!(StopMeans::parse(means.as_str()), Some(means));
        }
    }
}
