//! The HTTP contract over real sockets, in front of a small real service.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod access;
mod client;
mod contract;
mod fake;
mod files;
mod hostile;
mod http;
mod lifecycle;
mod programs;
mod tools;
mod viewer;
