//! Control groups on this machine's kernel, as root. A test binary of its own because making
//! groups needs root, or a delegation that test machines do not have.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod fixture;
mod frozen;
mod killed;
mod leaves;
mod limits;
mod places;
