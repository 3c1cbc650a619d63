//! The way around the queue: a small entry is written by whoever has it, when nothing else is being
//! written and the database does not make them wait.
//!
//! The queue has a thread of its own, and to wake that and be woken by it takes longer than to
//! write, and about as long as to sync. Whatever takes longer (many at once, trouble) is left to the
//! thread, and so is a sync where others would have to wait for it, too.

use std::fmt;

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Mutex,
    task::block_in_place,
};

use super::{Backend, Deed, Done, Failure, Message, Task, conduct::Conductor, group::Group};
use crate::LogError;

/// What is written on this way: no more than a moment's work.
const BYTES_MAX: usize = 16 * 1024;

/// A database that can be written without waiting.
pub(crate) trait Prompt: Backend {
    /// Writes as [`Backend::write`] does, but never waits; `None` when it would have to, and
    /// nothing was written.
    fn write_now(&mut self, deed: &mut Deed) -> Result<Option<Result<Done, LogError>>, Failure>;

    /// Whether [`Backend::keep_up`] has something to do.
    fn is_behind(&self) -> bool;

    /// Whether each write waits for the disk.
    fn is_synced(&self) -> bool;
}

/// The way around the queue.
pub(crate) trait Shortcut: fmt::Debug + Send + Sync {
    /// Does a task if that can be done now, and returns what is left for the queue.
    fn take(&self, task: Task) -> Option<Message>;
}

impl<B: Prompt + fmt::Debug> Shortcut for Mutex<Option<Conductor<B>>> {
    fn take(&self, task: Task) -> Option<Message> {
        let is_small = matches!(task.deed, Deed::Append(_)) && task.bytes <= BYTES_MAX;
        let Some(mut conductor) = self.try_lock().ok().filter(|_| is_small) else {
            return Some(Message::Task(task));
        };
        match conductor.as_mut().filter(|conductor| conductor.is_well()) {
            Some(conductor) if !conductor.backend.is_synced() => conductor.write_now(task),
            Some(conductor) if can_wait() => block_in_place(|| conductor.write_now(task)),
            _ => Some(Message::Task(task)),
        }
    }
}

/// Whether this thread may wait, because another one does its other work meanwhile.
fn can_wait() -> bool {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread)
}

impl<B: Prompt> Conductor<B> {
    fn write_now(&mut self, mut task: Task) -> Option<Message> {
        match self.backend.write_now(&mut task.deed) {
            Ok(Some(outcome)) => {
                let group = Group { tasks: vec![task] };
                self.answer(group, vec![outcome]);
                self.backend.is_behind().then_some(Message::KeepUp)
            }
            Ok(None) => Some(Message::Task(task)),
            Err(failure) => Some(Message::Failed(task, failure)),
        }
    }
}
