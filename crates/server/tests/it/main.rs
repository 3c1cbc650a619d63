//! The server as its clients meet it: over TCP, with a real log and a real runtime.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod access;
mod actions;
mod camel;
mod deeds;
mod events;
mod files;
mod fixture;
mod hostile;
mod http;
mod keys;
mod lifecycle;
mod outputs;
mod ports;
mod postgres;
mod programs;
mod requests;
mod sessions;
mod shares;
mod telemetry;
mod tenants;
mod terminals;
mod tls;
mod tools;
mod traces;
