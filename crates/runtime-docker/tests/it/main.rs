//! The runtime `docker` against a real Engine: the conformance suite on two images, and what only
//! it promises.
//!
//! `scripts/docker-tests` runs it: it builds the static program, starts an Engine that nobody else
//! sees and makes the images. A missing Engine or program is a failure.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

mod build;
mod build_clients;
mod build_program;
mod certificates;
mod conformance;
mod elsewhere;
mod engine;
mod faults;
mod files;
mod fixture;
mod hardening;
mod inside;
mod life;
mod limits;
mod openhands;
mod packages;
mod podman;
mod program;
mod settings;
mod ssh;
mod workspace;
