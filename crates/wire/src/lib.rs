//! Carries the protocol between host and sandbox: HTTP on a Unix socket or TCP, both ends.
//!
//! The routes, status codes and texts are those of the OpenHands V0 action execution server, so
//! that its client works unchanged. [`server`] puts an [`ActionService`] behind a listener,
//! [`client`] talks to one, [`program`] is what
//! both say of programs with streams of their own, [`serving`] is what any server of ours is made of, [`viewer`] shows single files to a browser on the same machine.
//! Nothing here interprets an action: bytes become typed values and go on.
#![deny(missing_docs)]

mod eager;
mod endpoint;
mod key;
mod limiter;
mod multipart;
mod owned;
mod service;
mod wrong_keys;

pub mod client;
pub mod files;
pub mod output;
pub mod program;
pub mod server;
pub mod serving;
pub mod strict;
pub mod tool_servers;
pub mod variables;
pub mod viewer;

pub use endpoint::Endpoint;
pub use key::{InvalidKey, SessionKey, prepare_keys};
pub use owned::Owned;
pub use service::{
    ActionService, ArchiveFormat, BoxFuture, ByteStream, Download, TransferError, Upload,
    UploadRoom, UploadTreatment,
};
