//! Telling others how a sandbox is.

use std::sync::{Arc, Mutex, PoisonError};

use zareba_protocol::RuntimeStatus;

/// A change in how a sandbox is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The new status; its level says whether it is good news.
    pub status: RuntimeStatus,
    /// A sentence for people.
    pub message: String,
}

/// Called with every change, in order, from the task that noticed it; must not block.
pub type StatusCallback = Arc<dyn Fn(&StatusUpdate) + Send + Sync>;

/// Keeps a sandbox's status and tells the callback of each change.
pub struct Statuses {
    current: Mutex<RuntimeStatus>,
    callback: Option<StatusCallback>,
}

impl Statuses {
    /// Starts as stopped, and tells nobody of that.
    pub fn new(callback: Option<StatusCallback>) -> Self {
        Self {
            current: Mutex::new(RuntimeStatus::Stopped),
            callback,
        }
    }

    /// The status now.
    pub fn current(&self) -> RuntimeStatus {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new status and tells of it. The lock is not held while the callback runs, so
    /// that it may ask for the status.
    pub fn change(&self, status: RuntimeStatus, message: impl Into<String>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = status;
        if let Some(callback) = &self.callback {
            callback(&StatusUpdate {
                status,
                message: message.into(),
            });
        }
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Statuses")
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}
