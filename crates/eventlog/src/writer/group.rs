//! [`Group`]: tasks that are written together.

use tokio::sync::mpsc;

use super::{Deed, Message, Task};
use crate::LogError;

/// How many tasks one transaction takes: enough for one sync to serve many, few enough that the
/// first does not wait long for the last.
const GROUP_MAX: usize = 256;
/// How many bytes one transaction takes, unless one task alone has more.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Tasks that are written together, in order.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) tasks: Vec<Task>,
}

impl Group {
    /// All tasks that wait, as far as one transaction takes them, and what else comes then.
    pub(super) fn gather(
        first: Message,
        queue: &mut mpsc::UnboundedReceiver<Message>,
    ) -> (Self, Option<Message>) {
        let mut group = Self::default();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Task(task) => group.tasks.push(task),
                other => return (group, Some(other)),
            }
            next = if group.is_full() {
                None
            } else {
                queue.try_recv().ok()
            };
        }
        (group, None)
    }

    pub(super) fn is_full(&self) -> bool {
        let bytes: usize = self.tasks.iter().map(|task| task.bytes).sum();
        self.tasks.len() >= GROUP_MAX || bytes >= GROUP_BYTES_MAX
    }

    pub(super) fn has_removal(&self) -> bool {
        (self.tasks.iter()).any(|task| matches!(task.deed, Deed::Remove(_)))
    }

    pub(super) fn deeds(&mut self) -> Vec<&mut Deed> {
        self.tasks.iter_mut().map(|task| &mut task.deed).collect()
    }

    pub(super) fn refuse(self, error: impl Fn() -> LogError) {
        for task in self.tasks {
            task.answer(Err(error()));
        }
    }
}
