//! What is heard of a turn while it lasts, and how it is brought to its end before its time.

use std::time::Duration;

use tokio::time::Instant;
use zareba_terminal::{Process, children};
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

/// The time from an interrupt to the first look at what it met; each later one takes twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// Looks at what an interrupt met: 1.3 seconds in all, in which even a busy machine starts a program.
const LOOKS_MAX: u32 = 7;

/// An interrupt that met the shell itself.
///
/// A key is a signal to the process group in the foreground. Between two programs that is the
/// shell, and bash that is about to start the next one remembers the signal until that one has
/// ended; its copy that is about to become the program forgets it. In both cases the command
/// would run on. The kernel reports neither a change of the foreground nor an exec, so a few looks
/// are taken, and the key is pressed once more when a program is there.
#[derive(Debug)]
pub(super) struct Interrupting {
    looks: u32,
    next: Instant,
}

impl Interrupting {
    fn begun() -> Self {
        Self {
            looks: 0,
            next: Instant::now() + FIRST_LOOK,
        }
    }

    pub(super) fn next_look(&self) -> Instant {
        self.next
    }

    /// `None` after the last look.
    fn later(self) -> Option<Self> {
        let looks = self.looks + 1;
        (looks < LOOKS_MAX).then(|| Self {
            looks,
            next: Instant::now() + FIRST_LOOK * 2_u32.pow(looks),
        })
    }
}

impl Actor {
    /// Brings the command to its end, which the one who waits is told of like any other.
    pub(super) fn stop(&mut self, means: StopMeans) {
        match means {
            StopMeans::Interrupt => {
                self.interrupting = self.key_meets_shell().then(Interrupting::begun);
                self.press_interrupt();
            }
            StopMeans::Kill => {
                if let Some(process) = &self.process {
                    process.child.kill_session();
                }
            }
        }
    }

    /// Presses the key once more if the shell, which it met, has started a program since.
    pub(super) fn interrupt_again(&mut self) {
        let interrupting = self.interrupting.take();
        if self.key_meets_shell() {
            self.interrupting = interrupting.and_then(Interrupting::later);
        } else {
            self.press_interrupt();
        }
    }

    fn press_interrupt(&mut self) {
        if let Some(key) = keys::control_key(INTERRUPT) {
            // A key is never too long.
            let _ = self.type_in(Ask::Press(key));
        }
    }

    /// A key would go to the shell, or to a copy of it that is about to become a program.
    fn key_meets_shell(&self) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let Ok(group) = process.pty.foreground() else {
            return false;
        };
        let shell = process.child.pid().cast_signed();
        group == shell
            || children(shell)
                .into_iter()
                .filter_map(|pid| Process::read(pid).ok())
                .any(|child| child.group == group && child.is_copy_with_handler)
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
