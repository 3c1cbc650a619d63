//! Root file systems from container images, without a daemon.
//!
//! An image comes from an archive, a directory or a registry, is checked digest by digest while
//! it is unpacked, and is kept in a store as one directory per layer. A sandbox puts these
//! directories below an overlay and holds a lease on the image as long as it lives. Everything
//! that an image contains is hostile input (G-1): nothing in it is run here, and nothing that it
//! says about paths, links, devices, rights or sizes is believed.
//!
//! What this deliberately does not do: build images, push them, or give files to other owners
//! than the one who imports.

mod decode;
mod digest;
mod error;
#[cfg(test)]
mod fixture;
mod image;
mod limits;
mod name;
mod platform;
mod progress;
pub mod registry;
mod source;
mod store;
mod unpack;

pub use digest::{Digest, Hasher, ParseDigestError};
pub use error::{DocumentProblem, ImageError};
pub use image::{Image, ImageConfig, ImageLease};
pub use limits::{LimitExceeded, Limits};
pub use name::{ImageName, NAME_BYTES_MAX, ParseNameError};
pub use progress::{Progress, Stage};
pub use store::{ImageStore, Removed, Scratch};
pub use unpack::{Refusal, UnpackError};
