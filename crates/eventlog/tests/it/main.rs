//! The log from outside: one suite for both databases, and what is peculiar to each.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a helper that cannot do its work fails the test"
)]

mod postgres;
mod sqlite;
mod suite;
mod support;
