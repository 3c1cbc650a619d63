//! The wire contract, held against recordings of the original and against random documents.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on shall panic, also in its fixtures"
)]

mod errors;
mod fixtures;
mod legacy;
mod messages;
mod properties;
mod round_trip;
mod schema;
mod strategies;
