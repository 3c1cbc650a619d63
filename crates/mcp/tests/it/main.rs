//! Both directions against the real thing: a sandbox of the runtime `cli`, clients of the official
//! SDK for Rust, and servers written by hand in Python, most of them hostile.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod fixture;
mod hostile;
mod http;
mod proxy;
mod servers;
mod stdio;
