//! What real sandboxes see, and whether the kernel agrees with the policy.
//!
//! Launching needs a process with a single thread, which the standard test harness cannot give;
//! the harness of the network tests understands the same command line. Every case holds with
//! root and without.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, which clippy does not see without the standard harness"
)]

#[path = "../network/harness.rs"]
mod harness;
mod image;
mod masks;
mod report;
mod sandbox;
mod system;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases = [
        system::cases(),
        image::cases(),
        masks::cases(),
        workspace::cases(),
        report::cases(),
    ]
    .concat();
    harness::run(&arguments, &cases)
}
