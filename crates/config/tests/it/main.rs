//! The configuration as a caller sees it: sources in, settings, origins and complaints out.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that cannot do its work fails the test"
)]

mod admission;
mod case;
mod docker;
mod documentation;
mod environment;
mod errors;
mod files;
mod flags;
mod mcp;
mod openhands;
mod precedence;
mod reads;
mod sandbox;
mod show;
mod trust;
