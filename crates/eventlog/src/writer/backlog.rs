//! [`Backlog`]: what waits in memory while nothing can be written.

use std::collections::VecDeque;

use super::{Task, group::Group};

/// How many entries may wait.
const WAITING_MAX: usize = 1024;
/// How much of memory they may take.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A bounded queue of tasks, in order.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    tasks: VecDeque<Task>,
    bytes: usize,
}

impl Backlog {
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Lets a task wait; without room it comes back.
    pub(super) fn push(&mut self, task: Task) -> Option<Task> {
        let has_room =
            self.tasks.len() < WAITING_MAX && self.bytes + task.bytes <= WAITING_BYTES_MAX;
        if !has_room {
            return Some(task);
        }
        self.bytes += task.bytes;
        self.tasks.push_back(task);
        None
    }

    /// Takes from the front what one transaction takes.
    pub(super) fn next_group(&mut self) -> Option<Group> {
        let mut group = Group::default();
        while !group.is_full()
            && let Some(task) = self.tasks.pop_front()
        {
            self.bytes -= task.bytes;
            group.tasks.push(task);
        }
        (!group.tasks.is_empty()).then_some(group)
    }

    /// Puts back what was taken and not written.
    pub(super) fn put_back(&mut self, group: Group) {
        for task in group.tasks.into_iter().rev() {
            self.bytes += task.bytes;
            self.tasks.push_front(task);
        }
    }
}
