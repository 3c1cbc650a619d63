//! What is asked of a shell, and what comes of it, before it is put into words.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zareba_terminal::{Rendered, Size};

use super::{keys::Key, process::StartShellError, spill::FullOutput};
use crate::outputs::ActionOutput;

/// Something that a shell is asked to do.
#[derive(Debug)]
pub(super) enum Request {
    /// Run, type, press or wait.
    Turn {
        ask: Ask,
        patience: Patience,
        reply: oneshot::Sender<Turn>,
        /// What is told of the output as it comes.
        heard: Option<Arc<ActionOutput>>,
    },
    /// Take another size.
    Resize(Size),
}

/// What a turn starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Run a new command.
    Run(String),
    /// Wait for more output of the running one.
    Wait,
    /// Type a line at the running one.
    Type(String),
    /// Press a key.
    Press(Key),
}

/// How long a turn may last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Patience {
    /// Without new output.
    pub(super) silence: Option<Duration>,
    /// In all.
    pub(super) total: Option<Duration>,
}

/// How a turn ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) outcome: Outcome,
    /// What was written since the last turn ended.
    pub(super) output: Rendered,
    /// The same command was waited for before.
    pub(super) continued: bool,
    /// All that the command has written.
    pub(super) full: FullOutput,
    /// A command before this one whose end nobody had asked for.
    pub(super) previous: Option<Previous>,
    /// The shell ended while nothing ran and was replaced.
    pub(super) replaced_before: bool,
}

impl Turn {
    /// A turn that touched nothing.
    pub(super) fn bare(outcome: Outcome) -> Self {
        Self {
            outcome,
            output: Rendered::default(),
            continued: false,
            full: FullOutput::default(),
            previous: None,
            replaced_before: false,
        }
    }
}

/// Why a turn ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The command did.
    Ended(Ended),
    /// The command ended before what was typed or pressed could reach it.
    EndedBefore(Ended),
    /// There was no output for this long.
    Silent(Duration),
    /// It lasted this long.
    TimedOut(Duration),
    /// A command is running, so another one cannot be.
    Busy,
    /// It went to a command that somebody else waits for.
    Passed,
    /// It was asked to end before it began.
    Withdrawn,
    /// No command is running.
    NothingRunning,
    /// A key was pressed at an idle shell.
    IdleKey { control: char, shell: Ended },
    /// The line is longer than a terminal takes.
    LineTooLong { limit: usize },
    /// There is no shell, and none could be started.
    NoShell(StartShellError),
}

/// What is known of a command that ended, and of its shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) status: i64,
    pub(super) background: Option<i64>,
    pub(super) directory: PathBuf,
    pub(super) search_path: String,
    /// The shell ended with it, and how.
    pub(super) shell_lost: Option<ShellLost>,
}

/// How a shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShellLost {
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
}

/// The end of a command that nobody had asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Previous {
    pub(super) status: i64,
    pub(super) output: String,
}
