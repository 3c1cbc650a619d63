//! Shells as a client of the executor sees them: actions in, observations out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that cannot do its work fails the test"
)]

mod ends;
mod hostile;
mod input;
mod many;
mod once;
mod output;
mod place;
mod posix;
mod programs;
mod random;
mod recorded;
mod state;
mod timeouts;
mod variables;
