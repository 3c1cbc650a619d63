//! Our terminal in raw mode, for as long as another terminal's program has it.

use std::io;

use rustix::{
    stdio::stdin,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use zareba_terminal::Size;

/// What a terminal is taken for that does not know its size.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// Raw mode: every key goes through, and nothing is changed on the way. Dropping it gives the
/// terminal back as it was, also when something panics.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
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
pub(super) fn size() -> Size {
    match tcgetwinsize(stdin()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            columns: size.ws_col,
            rows: size.ws_row,
        },
        _ => USUAL,
    }
}
