//! The life of a remote sandbox on this side: open, then closing, then closed.

use std::future::Future;

use tokio::sync::{Mutex, watch};

/// The sandbox is closed, or being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Closed,
}

/// Whether a sandbox can be used.
#[derive(Debug)]
pub(crate) struct Life {
    phase: watch::Sender<Phase>,
    /// Held by the one who closes.
    closing: Mutex<()>,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Open),
            closing: Mutex::default(),
        }
    }

    /// Does something while the sandbox is open; closing stops it.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Closed> {
        let mut phase = self.phase.subscribe();
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Open) => Err(Closed),
            result = work => Ok(result),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.phase.borrow() == Phase::Closed
    }

    /// Ends it by `end`. When that fails it is open again, and can be closed again.
    pub(crate) async fn close<E>(&self, end: impl Future<Output = Result<(), E>>) -> Result<(), E> {
        let _turn = self.closing.lock().await;
        if self.is_closed() {
            return Ok(());
        }
        self.phase.send_replace(Phase::Closing);
        let ended = end.await;
        let phase = if ended.is_ok() {
            Phase::Closed
        } else {
            Phase::Open
        };
        self.phase.send_replace(phase);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closing_stops_what_is_under_way_and_happens_once() {
        let life = Life::new();
        let waits = life.run(std::future::pending::<()>());
        let (stopped, closed) = tokio::join!(waits, life.close(async { Ok::<_, ()>(()) }));
        assert_eq!((stopped, closed), (Err(Closed), Ok(())));
        assert_eq!(life.close(async { Err(()) }).await, Ok(()));
        assert_eq!(life.run(async {}).await, Err(Closed));
    }

    #[tokio::test]
    async fn what_cannot_be_ended_can_be_used_on() {
        let life = Life::new();
        assert_eq!(life.close(async { Err("not now") }).await, Err("not now"));
        assert_eq!(life.run(async { 1 }).await, Ok(1));
        assert_eq!(life.close(async { Ok::<_, ()>(()) }).await, Ok(()));
        assert!(life.is_closed());
    }
}
