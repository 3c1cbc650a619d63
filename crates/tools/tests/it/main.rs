//! Tools in a real sandbox, with the real interpreter: `python3` must be there.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod calls;
mod commands;
mod endings;
mod fixture;
mod hostile;
mod loading;
mod written;
