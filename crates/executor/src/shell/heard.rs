//! What is heard of a turn while it lasts, and how it is brought to its end before its time.

use zareba_wire::output::StopMeans;

use super::{
    actor::{Actor, Event},
    keys,
    state::Waiter,
    turn::Ask,
};
use crate::outputs::ActionOutput;

/// The key that interrupts.
const INTERRUPT: &str = "C-c";

impl Actor {
    /// Brings the command to its end, which the one who waits is told of like any other.
    pub(super) fn stop(&mut self, means: StopMeans) {
        match means {
            StopMeans::Interrupt => {
                if let Some(key) = keys::control_key(INTERRUPT) {
                    // A key is never too long.
                    let _ = self.type_in(Ask::Press(key));
                }
            }
            StopMeans::Kill => {
                if let Some(process) = &self.process {
                    process.child.kill_session();
                }
            }
        }
    }

    pub(super) fn begin_output(&self, heard: Option<&ActionOutput>, from: u64) {
        if let Some(output) = heard {
            output.begin(self.spill.recording(), from);
        }
    }
}

/// The one who waits went away, or is asked to end.
pub(super) async fn end_of(waiter: &mut Option<Waiter>) -> Event {
    let Some(waiter) = waiter else {
        return std::future::pending().await;
    };
    let (gone, stop) = waiter.ends();
    tokio::select! {
        () = gone => Event::AskerGone,
        means = stop => Event::Stop(means),
    }
}
