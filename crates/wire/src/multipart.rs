//! The little of `multipart/form-data` that moving one file needs, in both directions.
//!
//! The reader hands out a part while it is still arriving and holds no more of it than the last
//! piece; preamble, part headers and the number of parts are bounded. A body that stops before
//! its closing delimiter is an error, never a short file.

mod disposition;
mod form;
mod reader;

pub(crate) use form::FileForm;
pub(crate) use reader::{MultipartReader, PartHead, boundary_of};
