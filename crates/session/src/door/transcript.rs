//! What passes between a program and its client, for the log: on a terminal all of it up to a
//! limit, on pipes how many bytes there were.
//!
//! The observer stands in the middle of the streams and never waits; a task of the program's takes
//! what it has gathered and records it in pieces, a second apart or when there is much. What is
//! typed is recorded like what is shown, without the secrets of the session.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramExit, ProgramObserver, StdinPiece,
};

use super::UnderWay;
use crate::StreamMask;

/// What is recorded of one terminal, both directions and a piece's own cost together.
pub const TRANSCRIPT_BYTES_MAX: usize = 1024 * 1024;

/// What a record costs beside its text. A program that prints a letter a second reaches the limit,
/// too.
const RECORD_BYTES: usize = 256;

/// Text that is gathered before it is recorded at once.
const PIECE_BYTES: usize = 16 * 1024;

/// How long a smaller piece may wait for more.
const GATHERING: Duration = Duration::from_secs(1);

/// The direction of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Input,
    Output,
}

/// What is gathered of one program.
struct Transcript {
    tape: Mutex<Tape>,
    /// There is something to record.
    changed: Notify,
    /// It should not wait any longer.
    urgent: Notify,
}

#[derive(Default)]
struct Tape {
    /// The masks of input and output; `None` where only bytes are counted.
    masks: Option<(StreamMask, StreamMask)>,
    pieces: Vec<(Direction, Vec<u8>)>,
    gathered: usize,
    recorded: usize,
    is_full: bool,
    full_is_told: bool,
    bytes: Bytes,
    end: Option<ProgramEvent>,
    is_over: bool,
}

#[derive(Default)]
struct Bytes {
    input: u64,
    output: u64,
    errors: u64,
}

/// Records what passes on a connection, and its end.
pub(super) fn record(
    program: ProgramConnection,
    under_way: UnderWay,
    is_terminal: bool,
) -> ProgramConnection {
    let log = Arc::clone(&under_way.log);
    let Some(input) = log.stream() else {
        return program;
    };
    let output = log.stream().filter(|_| is_terminal);
    let transcript = Arc::new(Transcript {
        tape: Mutex::new(Tape {
            masks: output.map(|output| (input, output)),
            ..Tape::default()
        }),
        changed: Notify::new(),
        urgent: Notify::new(),
    });
    let keeping = Arc::clone(&transcript);
    log.keep(Box::pin(keeping.keep(under_way)));
    program.observed(transcript)
}

impl Transcript {
    /// Records until the connection is over or the log is closed.
    async fn keep(self: Arc<Self>, under_way: UnderWay) {
        let log = Arc::clone(&under_way.log);
        let mut closing = log.closing();
        let mut is_closed = false;
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                () = &mut closing => is_closed = true,
            }
            if !is_closed {
                tokio::select! {
                    () = tokio::time::sleep(GATHERING) => {}
                    () = self.urgent.notified() => {}
                    () = &mut closing => is_closed = true,
                }
            }
            let is_over = is_closed || self.tape().is_over;
            let entries = self.tape().take(is_over);
            for entry in entries {
                log.record(Some(under_way.deed.number), entry).await;
            }
            if is_over {
                let outcome = self.tape().outcome();
                return under_way.end(outcome).await;
            }
        }
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, is_urgent: bool) {
        self.changed.notify_one();
        if is_urgent {
            self.urgent.notify_one();
        }
    }

    fn gather(&self, direction: Direction, bytes: &[u8]) {
        let is_urgent = self.tape().gather(direction, bytes);
        if let Some(is_urgent) = is_urgent {
            self.tell(is_urgent);
        }
    }
}

impl ProgramObserver for Transcript {
    fn input(&self, piece: &StdinPiece) {
        if let StdinPiece::Bytes(bytes) = piece {
            self.tape().bytes.input += bytes.len() as u64;
            self.gather(Direction::Input, bytes);
        }
    }

    fn event(&self, event: &ProgramEvent) {
        match event {
            ProgramEvent::Stdout(bytes) => {
                self.tape().bytes.output += bytes.len() as u64;
                self.gather(Direction::Output, bytes);
            }
            ProgramEvent::Stderr(bytes) => {
                self.tape().bytes.errors += bytes.len() as u64;
                self.gather(Direction::Output, bytes);
            }
            ProgramEvent::Exit(_) | ProgramEvent::Error(_) => {
                self.tape().end = Some(event.clone());
            }
        }
    }

    fn closed(&self) {
        self.tape().is_over = true;
        self.tell(true);
    }
}

impl Tape {
    /// Takes a piece of a stream. `None` when there is nothing to record; else whether it must not
    /// wait.
    fn gather(&mut self, direction: Direction, bytes: &[u8]) -> Option<bool> {
        let (input, output) = self.masks.as_mut()?;
        let shown = match direction {
            Direction::Input => input.push(bytes),
            Direction::Output => output.push(bytes),
        };
        self.put(direction, &shown);
        let is_new = self.gathered > 0 || (self.is_full && !self.full_is_told);
        is_new.then_some(self.gathered >= PIECE_BYTES)
    }

    fn put(&mut self, direction: Direction, shown: &[u8]) {
        if shown.is_empty() || self.is_full {
            return;
        }
        let cost = match self.pieces.last() {
            Some((last, _)) if *last == direction => shown.len(),
            _ => shown.len() + RECORD_BYTES,
        };
        if self.recorded + cost > TRANSCRIPT_BYTES_MAX {
            self.is_full = true;
            return;
        }
        self.recorded += cost;
        self.gathered += shown.len();
        match self.pieces.last_mut() {
            Some((last, piece)) if *last == direction => piece.extend_from_slice(shown),
            _ => self.pieces.push((direction, shown.to_vec())),
        }
    }

    /// What is to be recorded now. At the end also what the masks have held back.
    fn take(&mut self, is_over: bool) -> Vec<Map<String, Value>> {
        if let Some((mut input, mut output)) = self.masks.take_if(|_| is_over) {
            self.put(Direction::Input, &input.finish());
            self.put(Direction::Output, &output.finish());
        }
        self.gathered = 0;
        let pieces = std::mem::take(&mut self.pieces);
        let mut entries: Vec<_> = pieces
            .into_iter()
            .filter_map(|(direction, piece)| {
                let piece = self.whole_characters(direction, piece, is_over);
                let text = String::from_utf8_lossy(&piece);
                let entry = json!({
                    "state": "stream",
                    "stream": direction.as_str(),
                    "text": text,
                });
                entry.as_object().filter(|_| !piece.is_empty()).cloned()
            })
            .collect();
        if self.is_full && !std::mem::replace(&mut self.full_is_told, true) {
            let full = json!({ "state": "stream_full", "bytes_max": TRANSCRIPT_BYTES_MAX });
            entries.extend(full.as_object().cloned());
        }
        entries
    }

    /// Leaves the beginning of a character for the next piece.
    fn whole_characters(
        &mut self,
        direction: Direction,
        mut piece: Vec<u8>,
        is_over: bool,
    ) -> Vec<u8> {
        let whole = match std::str::from_utf8(&piece) {
            Err(error) if error.error_len().is_none() && !is_over => error.valid_up_to(),
            _ => return piece,
        };
        let rest = piece.split_off(whole);
        self.pieces.push((direction, rest));
        piece
    }

    fn outcome(&self) -> Map<String, Value> {
        let mut outcome = Map::new();
        let word = match &self.end {
            Some(ProgramEvent::Exit(ProgramExit::Code(code))) => {
                outcome.insert("exit_code".to_owned(), (*code).into());
                "exited"
            }
            Some(ProgramEvent::Exit(ProgramExit::Signal(signal))) => {
                outcome.insert("signal".to_owned(), (*signal).into());
                "exited"
            }
            Some(ProgramEvent::Error(_)) => "lost",
            // Dropping the connection ends the program.
            _ if self.is_over => "ended",
            _ => "session_closed",
        };
        outcome.insert("outcome".to_owned(), word.into());
        for (name, bytes) in [
            ("input_bytes", self.bytes.input),
            ("output_bytes", self.bytes.output),
            ("error_bytes", self.bytes.errors),
        ] {
            outcome.insert(name.to_owned(), bytes.into());
        }
        outcome
    }
}

impl Direction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Transcript").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Mask, Secret};

    use super::*;

    fn tape(secret: &str) -> Tape {
        let mask = Mask::new([&Secret(secret.to_owned())]);
        Tape {
            masks: Some((mask.stream(), mask.stream())),
            ..Tape::default()
        }
    }

    fn texts(entries: Vec<Map<String, Value>>) -> Vec<(String, String)> {
        let text = |entry: &Map<String, Value>, name: &str| {
            entry
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let texts = entries.iter();
        texts
            .map(|entry| (text(entry, "stream"), text(entry, "text")))
            .collect()
    }

    fn told(stream: &str, text: &str) -> (String, String) {
        (stream.to_owned(), text.to_owned())
    }

    #[test]
    fn pieces_join_hide_secrets_and_end_with_whole_characters() {
        let mut tape = tape("swordfish-123");
        tape.gather(Direction::Input, b"echo sword");
        tape.gather(Direction::Input, b"fish-123\n");
        tape.gather(Direction::Output, "caf\u{e9}".as_bytes().split_at(4).0);
        let first = texts(tape.take(false));
        assert_eq!(
            first,
            [
                told("input", "echo <secret_hidden>\n"),
                told("output", "caf")
            ]
        );
        tape.gather(Direction::Output, "\u{e9}!".as_bytes().split_at(1).1);
        tape.gather(Direction::Output, b" sword");
        assert_eq!(texts(tape.take(true)), [told("output", "\u{e9}! sword")]);
    }

    #[test]
    fn a_terminal_that_says_too_much_is_recorded_up_to_the_limit_and_that_is_told_once() {
        let mut tape = tape("swordfish-123");
        let much = vec![b'x'; PIECE_BYTES];
        let mut entries = Vec::new();
        for _ in 0..2 * TRANSCRIPT_BYTES_MAX / PIECE_BYTES {
            tape.gather(Direction::Output, &much);
            entries.extend(tape.take(false));
        }
        entries.extend(tape.take(true));
        let last = entries.pop();
        let full = json!({ "state": "stream_full", "bytes_max": TRANSCRIPT_BYTES_MAX });
        assert_eq!(last.map(Value::Object), Some(full));
        let recorded: usize = texts(entries).iter().map(|(_, text)| text.len()).sum();
        assert!(recorded <= TRANSCRIPT_BYTES_MAX);
        assert!(recorded > TRANSCRIPT_BYTES_MAX - 3 * PIECE_BYTES);
    }
}
