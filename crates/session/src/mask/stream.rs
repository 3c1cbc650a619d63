//! Hides secrets in bytes that come piece by piece.

use std::{ops::Range, sync::Arc};

use super::{Finder, HIDDEN};

/// Hides secrets in a stream, also those that are split between pieces.
///
/// It holds back what may be the beginning of a secret, which is less than the longest form of
/// one, and nothing else: what a program writes and then waits behind is seen at once.
pub struct StreamMask {
    finder: Option<Arc<Finder>>,
    /// Held back.
    held: Vec<u8>,
    /// So many of the held bytes are hidden already, by a replacement that was given out.
    covered: usize,
}

impl StreamMask {
    pub(super) fn new(finder: Option<Arc<Finder>>) -> Self {
        Self {
            finder,
            held: Vec::new(),
            covered: 0,
        }
    }

    /// Takes a piece and gives what can be shown.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let Some(finder) = self.finder.clone() else {
            return piece.to_vec();
        };
        self.held.extend_from_slice(piece);
        let hold = finder.begun(&self.held);
        self.give(&finder, hold)
    }

    /// The stream has ended: gives what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        match self.finder.clone() {
            Some(finder) => self.give(&finder, self.held.len()),
            None => Vec::new(),
        }
    }

    /// How many bytes are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives what stands before `hold`, and keeps the rest.
    fn give(&mut self, finder: &Finder, hold: usize) -> Vec<u8> {
        let mut shown = Vec::with_capacity(hold);
        let mut end = self.covered;
        for Range {
            start,
            end: place_end,
        } in finder.find(&self.held)
        {
            if start >= hold.max(end) {
                break;
            }
            // One that overlaps what is covered is hidden by the same replacement.
            if start >= end {
                shown.extend_from_slice(&self.held[end..start]);
                shown.extend_from_slice(HIDDEN.as_bytes());
            }
            end = end.max(place_end);
        }
        if end < hold {
            shown.extend_from_slice(&self.held[end..hold]);
        }
        self.covered = end.saturating_sub(hold);
        self.held.drain(..hold);
        shown
    }
}

impl std::fmt::Debug for StreamMask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamMask")
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
