//! What tells the executor to stop: a signal, or the end of its lifeline.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::{failure::Failure, signals::Signals};

/// How long actions under way may go on. OpenHands' client kills its server after 5 seconds.
pub(super) const DRAIN: Duration = Duration::from_secs(2);

/// Everything that may tell us to stop.
#[derive(Debug)]
pub(super) struct Stops {
    signals: Signals,
    lifeline: Option<oneshot::Receiver<()>>,
}

impl Stops {
    /// Must be called inside a runtime.
    pub(super) fn watch(lifeline: Option<oneshot::Receiver<()>>) -> Result<Self, Failure> {
        let signals = Signals::watch()?;
        Ok(Self { signals, lifeline })
    }

    /// Waits for the next of them. The lifeline ends once; signals may come again.
    pub(super) async fn next(&mut self) {
        let lifeline = &mut self.lifeline;
        let let_go = async {
            match lifeline {
                Some(lifeline) => drop(lifeline.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.signals.next() => return,
            () = let_go => {}
        }
        self.lifeline = None;
    }
}
