//! How a Rust type reads itself from a source.
//!
//! `shape` says what a type accepts, `types` implements that for the plain types, `choice` for
//! words out of a list, `amounts` for sizes and processors, and `text` turns the text of a
//! variable or flag into a value first.

mod amounts;
mod choice;
mod shape;
mod text;
mod types;

pub use amounts::{Processors, Size};
pub(crate) use choice::choice;
pub(crate) use shape::{Mismatch, Setting, Shape, choice_mismatch};
pub(crate) use text::Dialect;
