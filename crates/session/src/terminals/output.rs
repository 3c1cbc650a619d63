//! What a terminal has shown last, and those who look at it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::watch;

use super::terminal::TerminalEnd;

/// What is kept of a terminal's output: several screens of the largest window.
const RING_BYTES: usize = 256 * 1024;

/// What a viewer is given at once, at the most.
const PIECE_BYTES: usize = 64 * 1024;

/// Output that is kept, and how far it has got.
#[derive(Debug)]
pub(super) struct Output {
    ring: Mutex<Ring>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// The number of the first byte that is kept.
    start: u64,
}

/// What viewers wait for.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// The number that the next byte gets.
    end: u64,
    ended: Option<TerminalEnd>,
}

impl Output {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            ring: Mutex::default(),
            progress: watch::Sender::default(),
        })
    }

    /// Takes more output. Never waits for anybody.
    pub(super) fn push(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.ring().push(bytes);
        self.progress
            .send_modify(|progress| progress.end += bytes.len() as u64);
    }

    /// There will be no more. The first end is the one that counts.
    pub(super) fn end(&self, end: TerminalEnd) {
        self.progress.send_if_modified(|progress| {
            let is_first = progress.ended.is_none();
            progress.ended.get_or_insert(end);
            is_first
        });
    }

    pub(super) fn ended(&self) -> Option<TerminalEnd> {
        self.progress.borrow().ended.clone()
    }

    /// The number that the next byte gets.
    pub(super) fn length(&self) -> u64 {
        self.progress.borrow().end
    }

    /// Looks at the output from a byte on, or from as far back as it is kept.
    pub(super) fn view(self: &Arc<Self>, from: Option<u64>) -> Viewer {
        let progress = self.progress.subscribe();
        let (start, end) = (self.ring().start, self.length());
        Viewer {
            output: Arc::clone(self),
            progress,
            cursor: from.unwrap_or(start).clamp(start, end.max(start)),
            is_over: false,
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(RING_BYTES);
        let kept = bytes.get(skipped..).unwrap_or_default();
        let room = RING_BYTES - kept.len();
        let dropped = self.bytes.len().saturating_sub(room);
        self.bytes.drain(..dropped);
        self.bytes.extend(kept);
        self.start += (dropped + skipped) as u64;
    }

    /// What is kept from a byte on; `None` when it is kept no more.
    fn piece(&self, from: u64) -> Option<Bytes> {
        let offset = usize::try_from(from.checked_sub(self.start)?).ok()?;
        let end = self.bytes.len().min(offset + PIECE_BYTES);
        let (first, second) = self.bytes.as_slices();
        let part = |slice: &[u8], begin: usize| {
            let from = offset.saturating_sub(begin).min(slice.len());
            let to = end.saturating_sub(begin).min(slice.len());
            slice.get(from..to).unwrap_or_default().to_vec()
        };
        let mut piece = part(first, 0);
        piece.extend(part(second, first.len()));
        Some(piece.into())
    }
}

/// What a viewer sees next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalOutput {
    /// Output, in order.
    Bytes(Bytes),
    /// The viewer was too slow, and what it should see next is not kept any more. It can look
    /// again from this byte on; this viewer sees nothing more.
    Behind {
        /// The number of the first byte that is kept.
        cursor: u64,
    },
    /// There is no more output; this viewer sees nothing more.
    End(TerminalEnd),
}

/// Somebody who looks at a terminal. It holds no output of its own, so that any number may look.
#[derive(Debug)]
pub struct Viewer {
    output: Arc<Output>,
    progress: watch::Receiver<Progress>,
    cursor: u64,
    is_over: bool,
}

impl Viewer {
    /// The number of the byte that comes next.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// What comes next; `None` after the end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<TerminalOutput> {
        if self.is_over {
            return None;
        }
        loop {
            let ended = self.progress.borrow_and_update().ended.clone();
            let (piece, start) = {
                let ring = self.output.ring();
                (ring.piece(self.cursor), ring.start)
            };
            let Some(piece) = piece else {
                self.is_over = true;
                return Some(TerminalOutput::Behind { cursor: start });
            };
            if !piece.is_empty() {
                self.cursor += piece.len() as u64;
                return Some(TerminalOutput::Bytes(piece));
            }
            if let Some(end) = ended {
                self.is_over = true;
                return Some(TerminalOutput::End(end));
            }
            if self.progress.changed().await.is_err() {
                self.is_over = true;
                return Some(TerminalOutput::End(TerminalEnd::Closed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seen(viewer: &mut Viewer) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(TerminalOutput::Bytes(piece)) = viewer.next().await {
            assert!(piece.len() <= PIECE_BYTES);
            bytes.extend_from_slice(&piece);
        }
        bytes
    }

    fn numbered(length: usize) -> Vec<u8> {
        (0..length).map(|number| (number % 251) as u8).collect()
    }

    #[tokio::test]
    async fn every_viewer_sees_what_is_kept_and_then_what_comes() {
        let all = numbered(RING_BYTES + 70_000);
        for size in [1000, 65_537, RING_BYTES + 5, all.len()] {
            let output = Output::new();
            all.chunks(size).for_each(|piece| output.push(piece));
            let kept = all.len() - RING_BYTES;
            let mut early = output.view(None);
            assert_eq!(early.cursor(), kept as u64);
            let mut late = output.view(Some(all.len() as u64 - 3));
            output.push(b"end");
            output.end(TerminalEnd::Closed);
            assert_eq!(
                seen(&mut late).await,
                [&all[all.len() - 3..], b"end"].concat()
            );
            // What is kept has moved on by three bytes.
            let behind = early.next().await;
            assert_eq!(
                behind,
                Some(TerminalOutput::Behind {
                    cursor: kept as u64 + 3
                })
            );
            assert_eq!(early.next().await, None);
            let again = seen(&mut output.view(Some(0))).await;
            assert_eq!(again, [&all[kept + 3..], b"end"].concat());
        }
    }

    /// HS-15.
    #[tokio::test]
    async fn a_slow_viewer_is_cut_with_a_cursor_and_holds_nobody_up() {
        let output = Output::new();
        let (mut slow, mut quick) = (output.view(None), output.view(None));
        let piece = numbered(10_000);
        for _ in 0..100 {
            output.push(&piece);
            assert_eq!(
                quick.next().await,
                Some(TerminalOutput::Bytes(piece.clone().into()))
            );
        }
        let cursor = 1_000_000 - RING_BYTES as u64;
        assert_eq!(slow.next().await, Some(TerminalOutput::Behind { cursor }));
        output.end(TerminalEnd::Closed);
        assert_eq!(
            quick.next().await,
            Some(TerminalOutput::End(TerminalEnd::Closed))
        );
        let again = seen(&mut output.view(Some(cursor))).await;
        assert_eq!(again.len(), RING_BYTES);
    }
}
