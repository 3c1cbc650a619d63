//! What a build does, told while it does it.
//!
//! Both builders of the Engine answer with lines of JSON. The classic one writes texts that are
//! meant for people and tells steps by them alone; BuildKit sends messages, which `trace` reads.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{StatusCallback, StatusUpdate};

use super::trace::{self, TracedStep};

/// How much of what steps write is kept for the error.
const OUTPUT_BYTES_KEPT: usize = 4096;
/// Steps whose state is remembered; a build has a few dozen.
const STEPS_MAX: usize = 10_000;
/// The longest text that is told at once.
const TEXT_CHARS_MAX: usize = 4096;

/// Something that happens while an image is built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildEvent {
    /// Nothing is built, because this image is there.
    Reusing {
        /// Which.
        image: String,
    },
    /// An image that the build begins with is fetched.
    Fetching {
        /// Which.
        image: String,
        /// How far that is, in the Engine's words.
        status: String,
    },
    /// The context is sent.
    Sending {
        /// What was sent.
        bytes: u64,
        /// What there is to send.
        of: u64,
    },
    /// A step changed.
    Step {
        /// Its number and how many there are; `None` for what the builder does by itself.
        position: Option<(u32, u32)>,
        /// What it does.
        text: String,
        /// How far it is.
        state: StepState,
    },
    /// A step has written something.
    Output {
        /// One line or several.
        text: String,
    },
}

/// How far a step of a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepState {
    /// It has begun.
    Begun,
    /// Its result was there already.
    Cached,
    /// It is done.
    Done,
    /// It failed.
    Failed,
}

/// Called with everything that happens, in order; must not block.
pub type BuildListener = Arc<dyn Fn(&BuildEvent) + Send + Sync>;

/// Tells a build as changes of a status, which is `BUILDING_RUNTIME` all the time.
pub fn as_statuses(callback: StatusCallback) -> BuildListener {
    Arc::new(move |event| {
        if let Some(message) = event.sentence() {
            let status = RuntimeStatus::BuildingRuntime;
            callback(&StatusUpdate { status, message });
        }
    })
}

impl BuildEvent {
    /// A sentence for people; nothing for what happens many times a second.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Reusing { image } => Some(format!("the image `{image}` is there already")),
            Self::Fetching { image, status } => Some(format!("fetching `{image}`: {status}")),
            Self::Step {
                position,
                text,
                state: StepState::Begun,
            } => {
                let number = position.map(|(number, of)| format!("step {number} of {of}: "));
                Some(format!("{}{text}", number.unwrap_or_default()))
            }
            Self::Sending { .. } | Self::Step { .. } | Self::Output { .. } => None,
        }
    }
}

/// Makes events of what the Engine answers.
pub(super) struct Reading {
    listener: BuildListener,
    /// The step of the classic builder that runs.
    current: Option<(Option<(u32, u32)>, String)>,
    /// What was last told of steps of BuildKit.
    told: HashMap<String, StepState>,
    /// The end of what steps have written.
    output: String,
    failure: Option<String>,
}

impl Reading {
    pub(super) fn new(listener: BuildListener) -> Self {
        Self {
            listener,
            current: None,
            told: HashMap::new(),
            output: String::new(),
            failure: None,
        }
    }

    /// Takes one line of the answer.
    pub(super) fn line(&mut self, line: &Value) {
        if let Some(message) = line.pointer("/errorDetail/message").or(line.get("error")) {
            self.failure = Some(message.as_str().unwrap_or("it does not say why").to_owned());
        } else if let Some(trace) = line.get("aux").and_then(Value::as_str) {
            let trace = trace::read(trace).unwrap_or_default();
            for step in trace.steps {
                self.traced(step);
            }
            for text in trace.output {
                self.written(&text);
            }
        } else if let Some(text) = line.get("stream").and_then(Value::as_str) {
            self.streamed(text);
        }
    }

    /// What the Engine said when a step failed, and what steps had written before.
    pub(super) fn end(mut self) -> Result<(), (String, String)> {
        let last = if self.failure.is_some() {
            StepState::Failed
        } else {
            StepState::Done
        };
        self.end_current(last);
        match self.failure {
            Some(message) => Err((message, self.output.trim_end().to_owned())),
            None => Ok(()),
        }
    }

    fn streamed(&mut self, text: &str) {
        if let Some((position, deed)) = classic_step(text) {
            self.end_current(StepState::Done);
            self.step(position, &deed, StepState::Begun);
            self.current = Some((position, deed));
        } else if text.trim() == "---> Using cache" {
            self.end_current(StepState::Cached);
        } else if !is_bookkeeping(text) {
            self.written(text);
        }
    }

    fn end_current(&mut self, state: StepState) {
        if let Some((position, deed)) = self.current.take() {
            self.step(position, &deed, state);
        }
    }

    fn traced(&mut self, step: TracedStep) {
        let state = match &step {
            step if !step.error.is_empty() => StepState::Failed,
            step if step.cached => StepState::Cached,
            step if step.completed => StepState::Done,
            step if step.started => StepState::Begun,
            _ => return,
        };
        let is_news = self.told.get(&step.digest).is_none_or(|told| *told < state);
        if is_news && self.told.len() < STEPS_MAX {
            let (position, text) = traced_position(&step.name);
            self.step(position, text, state);
            self.told.insert(step.digest, state);
        }
    }

    fn step(&self, position: Option<(u32, u32)>, text: &str, state: StepState) {
        let text = text.chars().take(TEXT_CHARS_MAX).collect();
        (self.listener)(&BuildEvent::Step {
            position,
            text,
            state,
        });
    }

    fn written(&mut self, text: &str) {
        self.output.push_str(text);
        if self.output.len() > 2 * OUTPUT_BYTES_KEPT {
            let mut start = self.output.len() - OUTPUT_BYTES_KEPT;
            while !self.output.is_char_boundary(start) {
                start += 1;
            }
            self.output.drain(..start);
        }
        let text = text.chars().take(TEXT_CHARS_MAX).collect();
        (self.listener)(&BuildEvent::Output { text });
    }
}

/// `Step 2/5 : RUN true`.
fn classic_step(text: &str) -> Option<(Option<(u32, u32)>, String)> {
    let (position, deed) = text.strip_prefix("Step ")?.split_once(" : ")?;
    Some((Some(fraction(position)?), deed.trim_end().to_owned()))
}

/// `[2/5] RUN true`, or `[name 2/5] RUN true`; what is told without numbers has none.
fn traced_position(name: &str) -> (Option<(u32, u32)>, &str) {
    let inside = name
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let position = inside.and_then(|(inside, deed)| {
        let position = inside.rsplit(' ').next().and_then(fraction)?;
        Some((Some(position), deed))
    });
    position.unwrap_or((None, name))
}

fn fraction(text: &str) -> Option<(u32, u32)> {
    let (number, of) = text.split_once('/')?;
    Some((number.parse().ok()?, of.parse().ok()?))
}

/// What the classic builder says of its own work between steps.
fn is_bookkeeping(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || text.starts_with("---> ")
        || text.starts_with("Removing intermediate container ")
        || text.starts_with("Successfully built ")
        || text.starts_with("Successfully tagged ")
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
