//! Finds files by name (`glob`) and lines by regular expression (`grep`).
//!
//! Built on the libraries of ripgrep: ignore files are respected, also outside a git repository,
//! and the regular expressions are linear in time. The walk is our own: it goes through open
//! directories only, so that it cannot be led out of what may be reached. Both searches are
//! bounded in results, memory and time, and say in their content which bound was hit. They block:
//! an asynchronous caller runs them on a blocking thread.

mod bounds;
mod glob;
mod grep;
mod ignored;
mod pattern;
mod root;
mod walk;

pub(crate) use glob::glob;
pub(crate) use grep::grep;

#[cfg(test)]
mod scope_tests;
