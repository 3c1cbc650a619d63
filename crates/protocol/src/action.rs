//! What an agent may ask for: one struct per action type, holding what travels under `args`.
//!
//! [`Action`] ties the types together; `work` and `reach` hold what is executed, `talk` what only
//! appears in streams and trajectories, `contract` the wire's rules for each of them.

mod any;
pub(crate) mod contract;
mod message;
mod reach;
mod talk;
mod work;

pub use any::{Action, NotExecutable};
pub use reach::{BrowseInteractive, BrowseUrl, CallTool, FindFiles, SearchFiles, UseTool};
pub use talk::{
    ChangeAgentState, Condensation, Delegate, Finish, LoopRecovery, Recall, Reject, SendMessage,
    SystemMessage, TaskItem, Think, TrackTasks,
};
pub use work::{EditFile, ReadFile, RunCell, RunCommand, WriteFile};
