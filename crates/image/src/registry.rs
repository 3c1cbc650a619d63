//! Pulls images from registries that speak the OCI distribution protocol.
//!
//! [`pull`] turns a name into an OCI image layout on disk, and nothing more: the store's import
//! takes it from there, as it takes a layout from anywhere else. Everything that a registry sends
//! is hostile input (RH-1). Nothing is kept whose digest was not checked, every body has a limit
//! before it is read, and credentials go to the registry that they belong to and to the token
//! service that it names, never to where a redirect leads.
//!
//! What this deliberately does not do: push, run credential helpers, or take layers from the
//! addresses that a manifest may suggest.

mod address;
mod blob;
mod challenge;
mod connection;
mod credentials;
mod documents;
mod error;
mod layout;
mod options;
mod permission;
mod platform;
mod pull;
mod tries;

pub use error::{Part, PullError, Sought};
pub use options::{Patience, PullOptions, Transport};
pub use platform::Platform;
pub use pull::{PulledImage, pull};
