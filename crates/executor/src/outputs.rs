//! The output of actions while they run, found by the name under which an action runs once.
//!
//! An action's part of a recording begins where the previous action on the same command ended,
//! which is the beginning for the action that runs it, and ends with the action's turn.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::{sync::watch, time};
use zareba_wire::output::{
    OUTPUT_PIECE_BYTES_MAX, OUTPUT_WAIT_MAX, OutputPiece, OutputRequest, OutputState, StopMeans,
    StopRequest,
};

use crate::shell::Recording;

/// Outputs of ended actions that are kept: a reader that comes late or comes back asks within
/// moments.
const ENDED_MAX: usize = 64;

/// Bytes on the disk that the outputs of ended actions may hold. The newest may exceed it.
const ENDED_STORED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The outputs of the actions of one executor.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    by_action: Mutex<ByAction>,
    /// Changes when an action begins.
    begun: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct ByAction {
    outputs: HashMap<String, Arc<ActionOutput>>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<String>,
}

/// The output of one action.
#[derive(Debug, Default)]
pub(crate) struct ActionOutput {
    part: Mutex<Option<Part>>,
    /// Changes when the part begins or ends.
    changed: watch::Sender<()>,
    /// What the action was asked to end by, at last.
    stop: watch::Sender<Option<StopMeans>>,
}

/// The part of a command's recording that belongs to an action.
#[derive(Clone, Debug)]
struct Part {
    recording: Arc<Recording>,
    base: u64,
    end: Option<u64>,
}

/// Ends an action's output when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenOutput<'a> {
    outputs: &'a Outputs,
    action: String,
    output: Arc<ActionOutput>,
}

impl Outputs {
    /// Makes the output of an action, which a shell fills.
    pub(crate) fn open(&self, action: &str) -> OpenOutput<'_> {
        let output = Arc::<ActionOutput>::default();
        let mut known = self.lock();
        known.outputs.insert(action.to_owned(), Arc::clone(&output));
        drop(known);
        self.begun.send_replace(());
        OpenOutput {
            outputs: self,
            action: action.to_owned(),
            output,
        }
    }

    /// Some of an action's output, as soon as there is something new.
    pub(crate) async fn read(&self, asked: &OutputRequest) -> OutputPiece {
        let mut latest = OutputPiece::empty(asked.from, OutputState::Unknown);
        let read = self.read_until_new(asked, &mut latest);
        match time::timeout(asked.wait.min(OUTPUT_WAIT_MAX), read).await {
            Ok(piece) => piece,
            Err(_) => latest,
        }
    }

    /// Asks an action to end, and says whether it is under way.
    pub(crate) fn stop(&self, asked: &StopRequest) -> bool {
        let known = self.lock();
        let is_over = known.ended.contains(&asked.action);
        let output = known.outputs.get(&asked.action).filter(|_| !is_over);
        if let Some(output) = output {
            output.stop.send_replace(Some(asked.means));
        }
        output.is_some()
    }

    async fn read_until_new(&self, asked: &OutputRequest, latest: &mut OutputPiece) -> OutputPiece {
        let mut begun = self.begun.subscribe();
        let output = loop {
            let found = self.lock().outputs.get(&asked.action).cloned();
            match found {
                Some(output) => break output,
                // The sender is ours.
                None => drop(begun.changed().await),
            }
        };
        loop {
            let mut changed = output.changed.subscribe();
            let part = output.lock().clone();
            let Some(part) = part else {
                *latest = OutputPiece::empty(asked.from, OutputState::Running);
                let _ = changed.changed().await;
                continue;
            };
            let mut grown = part.recording.subscribe();
            let piece = part.read(asked.from);
            if piece.next > asked.from || piece.state == OutputState::Ended {
                return piece;
            }
            *latest = piece;
            tokio::select! {
                _ = changed.changed() => {}
                _ = grown.changed() => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByAction> {
        self.by_action
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenOutput<'_> {
    /// What the shell fills.
    pub(crate) fn output(&self) -> &Arc<ActionOutput> {
        &self.output
    }
}

impl Drop for OpenOutput<'_> {
    fn drop(&mut self) {
        self.output.end();
        let mut known = self.outputs.lock();
        known.ended.push_back(std::mem::take(&mut self.action));
        known.forget_old();
    }
}

impl ByAction {
    fn forget_old(&mut self) {
        let stored = |action: &String| self.outputs.get(action).map_or(0, |output| output.stored());
        let mut bytes: u64 = self.ended.iter().map(stored).sum();
        while self.ended.len() > 1
            && (self.ended.len() > ENDED_MAX || bytes > ENDED_STORED_BYTES_MAX)
        {
            let oldest = self
                .ended
                .pop_front()
                .and_then(|it| self.outputs.remove(&it));
            bytes = bytes.saturating_sub(oldest.map_or(0, |output| output.stored()));
        }
    }
}

impl ActionOutput {
    /// The action's part of a recording begins at an offset.
    pub(crate) fn begin(&self, recording: &Arc<Recording>, base: u64) {
        *self.lock() = Some(Part {
            recording: Arc::clone(recording),
            base,
            end: None,
        });
        self.changed.send_replace(());
    }

    /// The action's turn is over: what the command writes from now on belongs to the next one.
    /// Ending twice is no error.
    pub(crate) fn end(&self) {
        let mut part = self.lock();
        let part = part.get_or_insert_with(|| Part {
            recording: Arc::default(),
            base: 0,
            end: None,
        });
        part.end.get_or_insert(part.recording.written());
        self.changed.send_replace(());
    }

    /// What the action is asked to end by from now on.
    pub(crate) fn stops(&self) -> watch::Receiver<Option<StopMeans>> {
        self.stop.subscribe()
    }

    fn stored(&self) -> u64 {
        let part = self.lock();
        part.as_ref().map_or(0, |part| part.recording.stored())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Part>> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn read(&self, from: u64) -> OutputPiece {
        let end = self.end.unwrap_or(u64::MAX);
        let start = self.base.saturating_add(from);
        let (bytes, next) = self.recording.read(start, end, OUTPUT_PIECE_BYTES_MAX);
        let is_over = self.end.is_some_and(|end| next >= end);
        OutputPiece {
            bytes: Bytes::from(bytes),
            next: next.saturating_sub(self.base),
            state: match is_over {
                true => OutputState::Ended,
                false => OutputState::Running,
            },
        }
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
