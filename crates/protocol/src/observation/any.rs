//! [`Observation`]: the sum of all observation types and what can be said of any of them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{
    Browsed, CommandOutput, Edited, FilesFound, MatchesFound, Recalled, ToolOutcome,
    contract::{
        CellExtras, DelegateExtras, DownloadExtras, ErrorExtras, ReadExtras, StateExtras,
        TaskExtras, ToolExtras, WriteExtras,
    },
};
use crate::{AgentState, ReadSource, action::TaskItem, no_fields::NoExtras};

/// What came of an action. Every action yields exactly one.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The text that the agent reads.
    pub content: String,
    /// The type, with what it carries beside the text.
    pub kind: ObservationKind,
}

/// The type of an observation, with its `extras`.
///
/// It serialises as its `extras` alone; [`crate::ObservationEvent`] adds the rest.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "the variants are the wire words; structs carry the documentation"
)]
pub enum ObservationKind {
    Null,
    Run(CommandOutput),
    RunIpython {
        code: String,
        image_urls: Option<Vec<String>>,
    },
    Read {
        path: String,
        impl_source: ReadSource,
    },
    Write {
        path: String,
    },
    Edit(Edited),
    Browse(Box<Browsed>),
    Download {
        file_path: String,
    },
    /// The action failed before it could do anything, or could not be done at all.
    Error {
        error_id: String,
    },
    Mcp {
        name: String,
        arguments: Map<String, Value>,
    },
    /// Ours: the answer to `glob`.
    Glob(FilesFound),
    /// Ours: the answer to `grep`.
    Grep(MatchesFound),
    /// Ours: the answer to `call_tool`.
    Tool(Box<ToolOutcome>),
    Success,
    UserRejected,
    Condense,
    Think,
    LoopDetection,
    AgentStateChanged {
        agent_state: AgentState,
        reason: String,
    },
    Delegate {
        outputs: Map<String, Value>,
    },
    TaskTracking {
        command: String,
        task_list: Vec<TaskItem>,
    },
    Recall(Box<Recalled>),
}

impl Observation {
    /// The answer to an action that nobody executes.
    pub fn null() -> Self {
        Self {
            content: String::new(),
            kind: ObservationKind::Null,
        }
    }

    /// The answer to `run`.
    pub fn run(content: impl Into<String>, output: CommandOutput) -> Self {
        Self {
            content: content.into(),
            kind: ObservationKind::Run(output),
        }
    }

    /// The answer to `read`.
    pub fn read(content: impl Into<String>, path: impl Into<String>, source: ReadSource) -> Self {
        let kind = ObservationKind::Read {
            path: path.into(),
            impl_source: source,
        };
        Self {
            content: content.into(),
            kind,
        }
    }

    /// The answer to `write`, which has no text.
    pub fn write(path: impl Into<String>) -> Self {
        Self {
            content: String::new(),
            kind: ObservationKind::Write { path: path.into() },
        }
    }

    /// The answer to `edit`.
    pub fn edit(content: impl Into<String>, edited: Edited) -> Self {
        Self {
            content: content.into(),
            kind: ObservationKind::Edit(edited),
        }
    }

    /// An `error` observation, with the texts that agents and clients read.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            kind: ObservationKind::Error {
                error_id: String::new(),
            },
        }
    }

    /// An `error` observation with a word that programs can tell it by.
    pub fn named_error(error_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            kind: ObservationKind::Error {
                error_id: error_id.into(),
            },
        }
    }

    /// The answer to `think`.
    pub fn thought_logged() -> Self {
        Self {
            content: "Your thought has been logged.".to_owned(),
            kind: ObservationKind::Think,
        }
    }

    /// The type string that the wire uses.
    pub const fn kind_name(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether the action went well, where the wire says so: for commands, cells and tools.
    pub const fn success(&self) -> Option<bool> {
        match &self.kind {
            ObservationKind::Run(output) => Some(output.metadata.is_success()),
            // A cell that raised is a success too: it ran, and its text shows the exception.
            ObservationKind::RunIpython { .. } => Some(true),
            ObservationKind::Tool(outcome) => Some(outcome.error.is_none()),
            ObservationKind::Null
            | ObservationKind::Read { .. }
            | ObservationKind::Write { .. }
            | ObservationKind::Edit(_)
            | ObservationKind::Browse(_)
            | ObservationKind::Download { .. }
            | ObservationKind::Error { .. }
            | ObservationKind::Mcp { .. }
            | ObservationKind::Glob(_)
            | ObservationKind::Grep(_)
            | ObservationKind::Success
            | ObservationKind::UserRejected
            | ObservationKind::Condense
            | ObservationKind::Think
            | ObservationKind::LoopDetection
            | ObservationKind::AgentStateChanged { .. }
            | ObservationKind::Delegate { .. }
            | ObservationKind::TaskTracking { .. }
            | ObservationKind::Recall(_) => None,
        }
    }

    /// The text as the agent reads it, with what frames the output of a command.
    pub fn text_for_agent(&self) -> Cow<'_, str> {
        if let ObservationKind::Run(output) = &self.kind {
            output.metadata.text_for_agent(&self.content).into()
        } else {
            self.content.as_str().into()
        }
    }
}

impl ObservationKind {
    /// The type string that the wire uses.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Run(_) => "run",
            Self::RunIpython { .. } => "run_ipython",
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Edit(_) => "edit",
            Self::Browse(_) => "browse",
            Self::Download { .. } => "download",
            Self::Error { .. } => "error",
            Self::Mcp { .. } => "mcp",
            Self::Glob(_) => "glob",
            Self::Grep(_) => "grep",
            Self::Tool(_) => "tool",
            Self::Success => "success",
            Self::UserRejected => "user_rejected",
            Self::Condense => "condense",
            Self::Think => "think",
            Self::LoopDetection => "loop_detection",
            Self::AgentStateChanged { .. } => "agent_state_changed",
            Self::Delegate { .. } => "delegate",
            Self::TaskTracking { .. } => "task_tracking",
            Self::Recall(_) => "recall",
        }
    }
}

impl Serialize for ObservationKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null
            | Self::Success
            | Self::UserRejected
            | Self::Condense
            | Self::Think
            | Self::LoopDetection => NoExtras {}.serialize(serializer),
            Self::Run(extras) => extras.serialize(serializer),
            Self::RunIpython { code, image_urls } => {
                let image_urls = image_urls.as_deref().map(Cow::Borrowed);
                CellExtras {
                    code: code.into(),
                    image_urls,
                }
                .serialize(serializer)
            }
            Self::Read { path, impl_source } => ReadExtras {
                path: path.into(),
                impl_source: *impl_source,
            }
            .serialize(serializer),
            Self::Write { path } => WriteExtras { path: path.into() }.serialize(serializer),
            Self::Edit(extras) => extras.serialize(serializer),
            Self::Browse(extras) => extras.serialize(serializer),
            Self::Download { file_path } => DownloadExtras {
                file_path: file_path.into(),
            }
            .serialize(serializer),
            Self::Error { error_id } => ErrorExtras {
                error_id: error_id.into(),
            }
            .serialize(serializer),
            Self::Mcp { name, arguments } => {
                let arguments = Cow::Borrowed(arguments);
                ToolExtras {
                    name: name.into(),
                    arguments,
                }
                .serialize(serializer)
            }
            Self::Glob(extras) => extras.serialize(serializer),
            Self::Grep(extras) => extras.serialize(serializer),
            Self::Tool(extras) => extras.serialize(serializer),
            Self::AgentStateChanged {
                agent_state,
                reason,
            } => {
                let agent_state = *agent_state;
                StateExtras {
                    agent_state,
                    reason: reason.into(),
                }
                .serialize(serializer)
            }
            Self::Delegate { outputs } => DelegateExtras {
                outputs: Cow::Borrowed(outputs),
            }
            .serialize(serializer),
            Self::TaskTracking { command, task_list } => {
                let task_list = Cow::Borrowed(task_list.as_slice());
                TaskExtras {
                    command: command.into(),
                    task_list,
                }
                .serialize(serializer)
            }
            Self::Recall(extras) => extras.serialize(serializer),
        }
    }
}
