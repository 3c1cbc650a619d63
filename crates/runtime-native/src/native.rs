//! The sandbox of this machine: an executor behind walls that the kernel holds.

mod supervise;
mod view;

pub use supervise::{SuperviseError, Supervision, Usage, supervise};
pub use view::WorkspaceMode;
