//! From JSON to typed events.
//!
//! `action` reads what clients send and answers mistakes with the original's texts; `observation`
//! reads what servers answer and is tolerant; both share `envelope` and `fields`.

mod action;
mod envelope;
mod error;
mod fields;
mod legacy;
mod observation;

pub use error::DecodeError;
pub(crate) use fields::{FieldError, parse_fields};
