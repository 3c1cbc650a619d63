//! Which system calls a confined program may make.
//!
//! The profile is data, `seccomp/profile.toml`, with a reason per entry: an allow-list, so that a
//! call nobody has thought about is refused. It is compiled for this architecture into one filter
//! that the kernel runs at every call. Nothing here looks behind a pointer, because what is there
//! can change between the look and the use.

mod calls;
mod compile;
mod error;
mod install;
mod profile;
mod program;
mod ready;
mod shorten;

pub use error::SeccompError;
pub use install::CompiledFilter;
pub use profile::{Permissions, SeccompProfile};

#[cfg(test)]
mod compile_tests;
#[cfg(test)]
mod simulator;
