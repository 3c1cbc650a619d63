//! Runs the executor in a container of a Docker Engine.

mod engine;
mod options;
mod seccomp;
mod volumes;

pub use engine::*;
pub use options::*;
pub use volumes::*;
