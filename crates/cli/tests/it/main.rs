//! The real program, driven as users and parents drive it.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod announced;
mod support;

mod action;
mod changes;
mod docker;
mod executor_end;
mod executor_start;
mod home_tools;
mod http_client;
mod http_examples;
mod http_files;
mod http_shells;
mod images;
mod mcp;
mod platforms;
mod programs;
mod reach;
mod readme;
mod replay;
mod run;
mod sandboxes;
mod serve;
mod serve_clients;
mod serve_full_disk;
mod serve_kill;
mod serve_postgres;
mod serve_secrets;
mod serving;
mod shell;
mod tools;
mod tools_serve;
mod trust;
mod words;
