//! The wire's rules per observation type: its name and how its extras are read and described.
//!
//! One row per type and no other list of them. The extras of small types live here, because
//! outside they are fields of [`ObservationKind`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Browsed, CommandOutput, Edited, FilesFound, MatchesFound, ObservationKind, Recalled,
    ToolOutcome,
};
use crate::{
    AgentState, ReadSource,
    action::TaskItem,
    decode::{FieldError, parse_fields},
    no_fields::NoExtras,
};

/// What the wire says of one observation type.
pub(crate) struct ObservationContract {
    /// The type string.
    pub(crate) kind: &'static str,
    /// Reads the extras.
    pub(crate) parse: fn(Map<String, Value>) -> Result<ObservationKind, FieldError>,
    /// Describes the extras.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The contract of the type that the wire calls `kind`.
pub(crate) fn find(kind: &str) -> Option<&'static ObservationContract> {
    ALL.iter().find(|contract| contract.kind == kind)
}

macro_rules! contracts {
    ($($kind:literal $extras:ty => $parse:expr;)+) => {
        &[$(ObservationContract {
            kind: $kind,
            parse: |extras| parse_fields::<$extras>(extras).map($parse),
            schema: |generator| generator.subschema_for::<$extras>(),
        }),+]
    };
}

/// All types.
pub(crate) static ALL: &[ObservationContract] = contracts! {
    "null" NoExtras => |_| ObservationKind::Null;
    "run" CommandOutput => ObservationKind::Run;
    "run_ipython" CellExtras<'_> => |extras| ObservationKind::RunIpython {
        code: extras.code.into_owned(),
        image_urls: extras.image_urls.map(Cow::into_owned),
    };
    "read" ReadExtras<'_> => |extras| ObservationKind::Read {
        path: extras.path.into_owned(),
        impl_source: extras.impl_source,
    };
    "write" WriteExtras<'_> => |extras| ObservationKind::Write { path: extras.path.into_owned() };
    "edit" Edited => ObservationKind::Edit;
    "browse" Box<Browsed> => ObservationKind::Browse;
    "download" DownloadExtras<'_> => |extras| ObservationKind::Download {
        file_path: extras.file_path.into_owned(),
    };
    "error" ErrorExtras<'_> => |extras| ObservationKind::Error {
        error_id: extras.error_id.into_owned(),
    };
    "mcp" ToolExtras<'_> => |extras| ObservationKind::Mcp {
        name: extras.name.into_owned(),
        arguments: extras.arguments.into_owned(),
    };
    "glob" FilesFound => ObservationKind::Glob;
    "grep" MatchesFound => ObservationKind::Grep;
    "tool" Box<ToolOutcome> => ObservationKind::Tool;
    "success" NoExtras => |_| ObservationKind::Success;
    "user_rejected" NoExtras => |_| ObservationKind::UserRejected;
    "condense" NoExtras => |_| ObservationKind::Condense;
    "think" NoExtras => |_| ObservationKind::Think;
    "loop_detection" NoExtras => |_| ObservationKind::LoopDetection;
    "agent_state_changed" StateExtras<'_> => |extras| ObservationKind::AgentStateChanged {
        agent_state: extras.agent_state,
        reason: extras.reason.into_owned(),
    };
    "delegate" DelegateExtras<'_> => |extras| ObservationKind::Delegate {
        outputs: extras.outputs.into_owned(),
    };
    "task_tracking" TaskExtras<'_> => |extras| ObservationKind::TaskTracking {
        command: extras.command.into_owned(),
        task_list: extras.task_list.into_owned(),
    };
    "recall" Box<Recalled> => ObservationKind::Recall;
};

/// Extras of a `run_ipython` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CellOutput")]
pub(crate) struct CellExtras<'a> {
    /// The code as it was asked for.
    pub(crate) code: Cow<'a, str>,
    /// Pictures that the cell made, as data URLs.
    #[serde(default)]
    pub(crate) image_urls: Option<Cow<'a, [String]>>,
}

/// Extras of a `read` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileRead")]
pub(crate) struct ReadExtras<'a> {
    /// The file that was read.
    pub(crate) path: Cow<'a, str>,
    /// Plain text or the editor's numbered view.
    #[serde(default)]
    pub(crate) impl_source: ReadSource,
}

/// Extras of a `write` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileWritten")]
pub(crate) struct WriteExtras<'a> {
    /// The file that was written.
    pub(crate) path: Cow<'a, str>,
}

/// Extras of a `download` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileDownloaded")]
pub(crate) struct DownloadExtras<'a> {
    /// Where the file was saved.
    pub(crate) file_path: Cow<'a, str>,
}

/// Extras of an `error` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Failed")]
pub(crate) struct ErrorExtras<'a> {
    /// A stable name of the error, or nothing.
    #[serde(default)]
    pub(crate) error_id: Cow<'a, str>,
}

/// Extras of an `mcp` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ToolCalled")]
pub(crate) struct ToolExtras<'a> {
    /// The tool.
    #[serde(default)]
    pub(crate) name: Cow<'a, str>,
    /// What it was called with.
    #[serde(default)]
    pub(crate) arguments: Cow<'a, Map<String, Value>>,
}

/// Extras of an `agent_state_changed` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentStateChanged")]
pub(crate) struct StateExtras<'a> {
    /// The new state.
    pub(crate) agent_state: AgentState,
    /// Why it changed.
    #[serde(default)]
    pub(crate) reason: Cow<'a, str>,
}

/// Extras of a `delegate` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delegated")]
pub(crate) struct DelegateExtras<'a> {
    /// What the other agent returned.
    pub(crate) outputs: Cow<'a, Map<String, Value>>,
}

/// Extras of a `task_tracking` observation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TasksTracked")]
pub(crate) struct TaskExtras<'a> {
    /// `view` or `plan`.
    #[serde(default)]
    pub(crate) command: Cow<'a, str>,
    /// The tasks.
    #[serde(default)]
    pub(crate) task_list: Cow<'a, [TaskItem]>,
}
