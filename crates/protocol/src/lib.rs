//! The vocabulary of Zareba: actions, observations and events as plain data.
//!
//! The wire format is a superset of the OpenHands V0 event envelope. What is ours on top of it
//! travels as new action types and new top-level keys, because their client refuses unknown
//! keys inside `extras`. Nothing in this crate does IO.
//!
//! Start reading at [`ActionEvent`] (what a client sends) and [`ObservationEvent`] (what it gets).
//!
//! ```
//! use zareba_protocol::{Action, ActionEvent, CommandOutput, Observation, ObservationEvent};
//!
//! let event = ActionEvent::from_json(br#"{"action": "run", "args": {"command": "true"}}"#)?;
//! let Action::Run(run) = event.action else { unreachable!("the type says run") };
//! let mut output = CommandOutput::new(run.command);
//! output.metadata.exit_code = 0;
//! let answer = ObservationEvent::from(Observation::run("", output)).to_value();
//! assert_eq!(answer["message"], "Command `true` executed with exit code 0.");
//! # Ok::<(), zareba_protocol::DecodeError>(())
//! ```
#![deny(missing_docs)]

mod action;
pub mod amounts;
mod control_key;
mod decode;
mod encode;
mod enums;
mod envelope;
mod error_class;
mod no_fields;
mod observation;
mod python_literal;
pub mod python_repr;
pub mod schema;
mod session_id;
mod shell_name;
mod status;
mod truncate;

pub use action::{
    Action, BrowseInteractive, BrowseUrl, CallTool, ChangeAgentState, Condensation, Delegate,
    EditFile, FindFiles, Finish, LoopRecovery, NotExecutable, ReadFile, Recall, Reject, RunCell,
    RunCommand, SearchFiles, SendMessage, SystemMessage, TaskItem, Think, TrackTasks, UseTool,
    WriteFile,
};
pub use control_key::ControlKey;
pub use decode::DecodeError;
pub use enums::{
    AgentState, ConfirmationState, EditSource, EventSource, ReadSource, RecallKind, SecurityRisk,
    UnknownRisk,
};
pub use envelope::{ActionEvent, ObservationEvent};
pub use error_class::ErrorClass;
pub use observation::{
    Browsed, CommandMetadata, CommandOutput, Edited, FilesFound, LimitHit, LimitKind, MatchesFound,
    Observation, ObservationKind, Recalled, ToolFailure, ToolOutcome,
};
pub use session_id::{InvalidSessionId, SessionId};
pub use shell_name::{InvalidShellName, ShellName};
pub use status::{RuntimeStatus, StatusLevel};
pub use truncate::{OUTPUT_CHARS_MAX, TRUNCATION_MARKER, truncate_middle};
