//! One named test per attempt to get at what a confined program must not reach, and a few that
//! show that ordinary programs still work.
//!
//! Confinement cannot be undone, so every attempt is made in a process of its own: this binary
//! starts itself again as a *victim*, which puts all layers on, makes the attempt, and tells what
//! came of it. The same attempt without the layers shows that they, and not something else, made
//! the difference. That needs a process with a single thread, which the standard test harness
//! cannot give; `harness.rs` understands the same command line.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, which clippy does not see without the standard harness"
)]

mod files;
mod harness;
mod kernel;
mod layers;
mod processes;
mod programs;
mod sockets;
mod sys;
mod victim;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cases: Vec<victim::Case> = [
        processes::cases(),
        kernel::cases(),
        sockets::cases(),
        files::cases(),
        layers::cases(),
        programs::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match victim::Order::from_arguments(&arguments) {
        Some(order) => victim::obey(&order, &cases),
        None => harness::run(&arguments, &cases),
    }
}
