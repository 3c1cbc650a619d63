//! The server as its clients meet it: over TCP, with a real log and a real runtime.

mod access;
mod actions;
mod events;
mod fixture;
mod hostile;
mod http;
mod keys;
mod lifecycle;
mod sessions;
mod telemetry;
mod tls;
