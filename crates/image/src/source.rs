//! Where an image comes from, told by what is there and not by its name.
//!
//! `blobs` gives access to the parts of an image in a directory or an archive, `detect` finds out
//! what a path holds, `documents` are the texts that describe images, and `plan` turns them into
//! what is to be unpacked.

mod blobs;
mod detect;
mod documents;
mod plan;

pub(crate) use blobs::{Blobs, Section};
pub(crate) use detect::{Found, detect};
pub(crate) use plan::{Plan, PlannedLayer, plan};
