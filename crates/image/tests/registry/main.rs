//! Pulls over real sockets, from a small real registry on this machine's loopback.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod access;
mod integrity;
mod patience;
mod pulling;
mod redirects;
mod server;
mod shelf;
mod tls;
mod workbench;
