//! [`Action`]: the sum of all action types and what can be said of any of them.

use serde::{Serialize, Serializer};

use super::{
    BrowseInteractive, BrowseUrl, CallTool, ChangeAgentState, Condensation, Delegate, EditFile,
    FindFiles, Finish, LoopRecovery, ReadFile, Recall, Reject, RunCell, RunCommand, SearchFiles,
    SendMessage, SystemMessage, Think, TrackTasks, UseTool, WriteFile,
};
use crate::no_fields::NoArgs;

/// One thing that an agent asks for.
///
/// The variants follow the wire's type strings, which [`Action::kind`] returns. A runtime acts
/// on those for which [`Action::is_runnable`] holds; the others appear in streams and
/// trajectories. It serialises as its `args` alone; [`crate::ActionEvent`] adds the rest.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "each variant is documented on the struct that it carries"
)]
pub enum Action {
    Null,
    Run(RunCommand),
    RunIpython(RunCell),
    Read(ReadFile),
    Write(WriteFile),
    Edit(EditFile),
    Browse(BrowseUrl),
    BrowseInteractive(BrowseInteractive),
    CallToolMcp(CallTool),
    /// Ours: file names by pattern.
    Glob(FindFiles),
    /// Ours: lines by regular expression.
    Grep(SearchFiles),
    /// Ours: a tool of the session.
    CallTool(UseTool),
    Message(SendMessage),
    System(SystemMessage),
    Think(Think),
    Finish(Finish),
    Reject(Reject),
    Delegate(Delegate),
    Recall(Recall),
    ChangeAgentState(ChangeAgentState),
    Condensation(Condensation),
    CondensationRequest,
    TaskTracking(TrackTasks),
    LoopRecovery(LoopRecovery),
}

/// An action that no executor performs, in the words of the original server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'ActionExecutor' object has no attribute '{kind}'")]
pub struct NotExecutable {
    /// The type of the action.
    pub kind: &'static str,
}

impl Action {
    /// The type string that the wire uses.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Run(_) => "run",
            Self::RunIpython(_) => "run_ipython",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::Browse(_) => "browse",
            Self::BrowseInteractive(_) => "browse_interactive",
            Self::CallToolMcp(_) => "call_tool_mcp",
            Self::Glob(_) => "glob",
            Self::Grep(_) => "grep",
            Self::CallTool(_) => "call_tool",
            Self::Message(_) => "message",
            Self::System(_) => "system",
            Self::Think(_) => "think",
            Self::Finish(_) => "finish",
            Self::Reject(_) => "reject",
            Self::Delegate(_) => "delegate",
            Self::Recall(_) => "recall",
            Self::ChangeAgentState(_) => "change_agent_state",
            Self::Condensation(_) => "condensation",
            Self::CondensationRequest => "condensation_request",
            Self::TaskTracking(_) => "task_tracking",
            Self::LoopRecovery(_) => "loop_recovery",
        }
    }

    /// Whether a runtime acts on it; all other actions concern only agent and user.
    pub const fn is_runnable(&self) -> bool {
        self.is_executable() || matches!(self, Self::CallToolMcp(_) | Self::CallTool(_))
    }

    /// Whether an executor performs it. A tool call is runnable but not executable: the host
    /// makes it, because only the host knows every tool.
    pub const fn is_executable(&self) -> bool {
        match self {
            Self::Run(_)
            | Self::RunIpython(_)
            | Self::Read(_)
            | Self::Write(_)
            | Self::Edit(_)
            | Self::Browse(_)
            | Self::BrowseInteractive(_)
            | Self::Glob(_)
            | Self::Grep(_) => true,
            Self::Null
            | Self::CallToolMcp(_)
            | Self::CallTool(_)
            | Self::Message(_)
            | Self::System(_)
            | Self::Think(_)
            | Self::Finish(_)
            | Self::Reject(_)
            | Self::Delegate(_)
            | Self::Recall(_)
            | Self::ChangeAgentState(_)
            | Self::Condensation(_)
            | Self::CondensationRequest
            | Self::TaskTracking(_)
            | Self::LoopRecovery(_) => false,
        }
    }

    /// Refuses an action that no executor performs with the text that clients know.
    ///
    /// # Errors
    /// When [`Action::is_executable`] does not hold.
    pub const fn require_executable(&self) -> Result<(), NotExecutable> {
        if self.is_executable() {
            Ok(())
        } else {
            Err(NotExecutable { kind: self.kind() })
        }
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::CondensationRequest => NoArgs {}.serialize(serializer),
            Self::Run(args) => args.serialize(serializer),
            Self::RunIpython(args) => args.serialize(serializer),
            Self::Read(args) => args.serialize(serializer),
            Self::Write(args) => args.serialize(serializer),
            Self::Edit(args) => args.serialize(serializer),
            Self::Browse(args) => args.serialize(serializer),
            Self::BrowseInteractive(args) => args.serialize(serializer),
            Self::CallToolMcp(args) => args.serialize(serializer),
            Self::Glob(args) => args.serialize(serializer),
            Self::Grep(args) => args.serialize(serializer),
            Self::CallTool(args) => args.serialize(serializer),
            Self::Message(args) => args.serialize(serializer),
            Self::System(args) => args.serialize(serializer),
            Self::Think(args) => args.serialize(serializer),
            Self::Finish(args) => args.serialize(serializer),
            Self::Reject(args) => args.serialize(serializer),
            Self::Delegate(args) => args.serialize(serializer),
            Self::Recall(args) => args.serialize(serializer),
            Self::ChangeAgentState(args) => args.serialize(serializer),
            Self::Condensation(args) => args.serialize(serializer),
            Self::TaskTracking(args) => args.serialize(serializer),
            Self::LoopRecovery(args) => args.serialize(serializer),
        }
    }
}

macro_rules! action_from {
    ($($variant:ident($args:ident)),+ $(,)?) => {
        $(impl From<$args> for Action {
            fn from(args: $args) -> Self {
                Self::$variant(args)
            }
        })+
    };
}

action_from! {
    Run(RunCommand), RunIpython(RunCell), Read(ReadFile), Write(WriteFile), Edit(EditFile),
    Browse(BrowseUrl), BrowseInteractive(BrowseInteractive), CallToolMcp(CallTool),
    Glob(FindFiles), Grep(SearchFiles), CallTool(UseTool), Message(SendMessage), System(SystemMessage),
    Think(Think), Finish(Finish), Reject(Reject), Delegate(Delegate), Recall(Recall),
    ChangeAgentState(ChangeAgentState), Condensation(Condensation), TaskTracking(TrackTasks),
    LoopRecovery(LoopRecovery),
}
