//! The facades over real sessions, a real log and a real runtime, by HTTP.

mod client;
mod provider;

mod access;
mod executor;
mod remote_api;
