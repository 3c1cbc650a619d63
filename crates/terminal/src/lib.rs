//! Terminal processes: a pseudo-terminal, the process on it, and what a person would see there.
//!
//! * [`Pty`] is an open terminal pair; [`Spawn`] starts a program on it, or on pipes, as session
//!   leader.
//! * [`Child`] is that program, known by a process descriptor and not by its number.
//! * [`Process`] is any process as `/proc` shows it; [`kill_descendants`] ends a family.
//! * [`Screen`] turns the bytes that programs write into the text a person would see.
//!
//! The crate knows nothing of shells, commands or observations. It is one of the two crates
//! that may hold `unsafe`, and keeps it in `sys`.

mod child;
mod pages;
mod processes;
mod pty;
mod screen;
mod spawn;
mod sys;

pub use child::{Child, ExitReason};
pub use processes::{
    Process, ProcessId, children, continue_descendants, descendants, kill_descendants, kill_family,
    stop_descendants,
};
pub use pty::{Pty, Size};
pub use screen::{Limits, Rendered, Screen};
pub use spawn::{Credentials, ExtraFd, PipedInput, Pipes, Spawn, SpawnError};
pub use sys::{HugeProgram, release_program_pages, take_inherited};
