//! The terminal that a person sits at: raw mode, its size, and what is typed.

use std::{
    io::{self, Read as _},
    thread,
};

use rustix::{
    stdio::stdin,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use tokio::sync::mpsc;
use zareba_terminal::Size;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// What a terminal is taken for that does not know its size.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// What is read at once from the keyboard.
const CHUNK_BYTES: usize = 16 * 1024;

/// Pieces of input that may wait for the program to take them.
const INPUT_QUEUE: usize = 4;

/// Raw mode: every key goes through, and nothing is changed on the way. Dropping it gives the
/// terminal back as it was, also when something panics.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// The size of our terminal.
pub(crate) fn size() -> Size {
    match tcgetwinsize(stdin()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            columns: size.ws_col,
            rows: size.ws_row,
        },
        _ => USUAL,
    }
}

/// What comes from standard input, read on a thread of its own because it blocks. The thread
/// cannot be called back; it goes with the process.
pub(crate) fn keyboard() -> Result<mpsc::Receiver<Vec<u8>>, Failure> {
    let (sender, receiver) = mpsc::channel(INPUT_QUEUE);
    let read = move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = io::stdin().lock().read(&mut chunk) {
            if sender.blocking_send(chunk[..length].to_vec()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("keyboard".to_owned())
        .spawn(read)
        .or_fail(Exit::Failure, "cannot start a thread")?;
    Ok(receiver)
}
