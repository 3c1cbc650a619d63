//! What comes of an action: its content and, per type, what travels under `extras`.
//!
//! [`Observation`] ties the types together; `command` holds what a shell reports, `extras` what
//! the other types carry, `contract` the wire's rules for each of them.

mod any;
mod command;
pub(crate) mod contract;
mod extras;
mod message;

pub use any::{Observation, ObservationKind};
pub use command::{CommandMetadata, CommandOutput, LimitHit, LimitKind};
pub use extras::{Browsed, Edited, FilesFound, MatchesFound, Recalled, ToolFailure, ToolOutcome};
