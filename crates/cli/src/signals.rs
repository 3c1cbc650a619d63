//! Signals that ask the program to end.

use tokio::signal::unix::{Signal, SignalKind, signal};
use zareba_confine::is_ignored;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The numbers of the three, which are the same on every system.
pub(crate) const HANG_UP: u8 = 1;
pub(crate) const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// Signals that ask the program to end.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// None when we were told to live on without our terminal.
    hang_up: Option<Signal>,
}

impl Signals {
    /// From now on they do not end the process by themselves. Must be called inside a runtime.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let open = |kind| signal(kind).or_fail(Exit::Start, "cannot wait for signals");
        // `nohup` ignores it for us, which a handler would undo.
        let hang_up = (!is_ignored(HANG_UP.into())).then(SignalKind::hangup);
        Ok(Self {
            terminate: open(SignalKind::terminate())?,
            interrupt: open(SignalKind::interrupt())?,
            hang_up: hang_up.map(open).transpose()?,
        })
    }

    /// Waits for the next one and returns its number. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> u8 {
        let hang_up = &mut self.hang_up;
        let hung_up = async {
            match hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => TERMINATE,
            _ = self.interrupt.recv() => INTERRUPT,
            _ = hung_up => HANG_UP,
        }
    }
}
