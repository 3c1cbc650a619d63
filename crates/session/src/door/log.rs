//! Where deeds are recorded: [`DeedLog`], and the log that keeps nothing.

use std::any::Any;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use zareba_runtime::RuntimeError;

use crate::StreamMask;

/// Keeps records of deeds.
///
/// Entries hold no secrets in clear once they are kept: a log masks them. The methods may be called
/// from many tasks at once.
pub trait DeedLog: Send + Sync {
    /// Records that a deed begins and returns the number of that record once it is as durable as
    /// the record of an action. An error refuses the deed.
    fn begin(&self, entry: Map<String, Value>) -> BoxFuture<'_, Result<BegunDeed, RuntimeError>>;

    /// Records what came of the deed with this number, or a refusal. It waits until the entry is
    /// accepted; what cannot be written is told to the program's own log.
    fn record(&self, deed: Option<u64>, entry: Map<String, Value>) -> BoxFuture<'_, ()>;

    /// Counts a deed that has ended, with the bytes that it moved. It waits for nothing.
    fn count(&self, entry: Map<String, Value>, bytes: u64);

    /// Runs work that records something later. The log waits for it when it is closed.
    fn keep(&self, work: BoxFuture<'static, ()>);

    /// Ready when the log is being closed, and what is under way should end its records.
    fn closing(&self) -> BoxFuture<'static, ()>;

    /// Hides the secrets in a stream; `None` when streams are not kept at all.
    fn stream(&self) -> Option<StreamMask>;
}

/// A deed whose beginning is recorded. The log is not closed while it is held.
pub struct BegunDeed {
    /// The number of the record.
    pub number: u64,
    /// What keeps the log open.
    pub held: Option<Box<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for BegunDeed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("BegunDeed")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The log of commands that use a sandbox without a server: it keeps nothing. The event log has one
/// writer, the server, and there is none.
#[derive(Clone, Copy, Debug)]
pub struct Unkept;

impl DeedLog for Unkept {
    fn begin(&self, _entry: Map<String, Value>) -> BoxFuture<'_, Result<BegunDeed, RuntimeError>> {
        let begun = BegunDeed {
            number: 0,
            held: None,
        };
        Box::pin(std::future::ready(Ok(begun)))
    }

    fn record(&self, _deed: Option<u64>, _entry: Map<String, Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn count(&self, _entry: Map<String, Value>, _bytes: u64) {}

    fn keep(&self, _work: BoxFuture<'static, ()>) {}

    fn closing(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn stream(&self) -> Option<StreamMask> {
        None
    }
}
