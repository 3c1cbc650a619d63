//! The human sentence that the wire carries beside an observation; it is derived, never parsed.

use std::borrow::Cow;

use super::{Observation, ObservationKind};
use crate::RecallKind;

impl Observation {
    /// The sentence that describes the observation to a person; empty for some types.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.kind {
            ObservationKind::Null => "No observation".into(),
            ObservationKind::Run(output) => format!(
                "Command `{}` executed with exit code {}.",
                output.command, output.metadata.exit_code
            )
            .into(),
            ObservationKind::RunIpython { .. } => "Code executed in IPython cell.".into(),
            ObservationKind::Read { path, .. } => format!("I read the file {path}.").into(),
            ObservationKind::Write { path } => format!("I wrote to the file {path}.").into(),
            ObservationKind::Edit(edited) => format!("I edited the file {}.", edited.path).into(),
            ObservationKind::Browse(browsed) => format!("Visited {}", browsed.url).into(),
            ObservationKind::Download { file_path } => {
                format!("Downloaded the file at location: {file_path}").into()
            }
            ObservationKind::Glob(found) => format!("Files found: {}", found.files.len()).into(),
            ObservationKind::Grep(found) => {
                format!("Lines found: {} in files: {}", found.matches, found.files).into()
            }
            ObservationKind::Tool(outcome) => match outcome.error {
                None => format!("Tool `{}` returned.", outcome.name).into(),
                Some(_) => format!("Tool `{}` failed.", outcome.name).into(),
            },
            ObservationKind::Error { .. }
            | ObservationKind::Mcp { .. }
            | ObservationKind::Success
            | ObservationKind::UserRejected
            | ObservationKind::Condense
            | ObservationKind::Think
            | ObservationKind::TaskTracking { .. } => self.content.as_str().into(),
            ObservationKind::LoopDetection
            | ObservationKind::AgentStateChanged { .. }
            | ObservationKind::Delegate { .. } => "".into(),
            ObservationKind::Recall(recalled) => match recalled.recall_type {
                RecallKind::WorkspaceContext => "Added workspace context".into(),
                RecallKind::Knowledge => "Added microagent knowledge".into(),
            },
        }
    }
}
