//! The network of real sandboxes: what a program inside reaches, and how it is reached.
//!
//! Launching needs a process with a single thread, which the standard test harness cannot give;
//! `harness.rs` understands the same command line. The program inside is a copy of this process,
//! as a *puppet* that does what it is told over its standard input. Every case holds with root
//! and without.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, which clippy does not see without the standard harness"
)]

mod harness;
mod inward;
mod outward;
mod puppet;
mod ready;
mod sandbox;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases = [outward::cases(), inward::cases(), ready::cases()].concat();
    harness::run(&arguments, &cases)
}
