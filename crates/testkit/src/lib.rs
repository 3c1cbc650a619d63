//! Fixtures and the conformance suite every backend must pass.
//!
//! [`conformance`] holds any [`Runtime`](zareba_runtime::Runtime) to its contract, one named
//! case per promise; [`traces`] finds what a sandbox has left on this machine; [`readme`] walks
//! through the README.
#![deny(missing_docs)]

pub mod conformance;
pub mod readme;
pub mod traces;
