//! The configuration files: which ones they are, and what they say.

mod locate;
mod position;
mod project;
mod read;

pub use locate::FilePlace;
pub(crate) use locate::{SourceFile, locate, user_directory, why_not_ours};
pub use project::ProjectFile;
pub(crate) use read::apply;
