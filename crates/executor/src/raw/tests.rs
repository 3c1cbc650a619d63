//! Files as bytes, on real files in directories of their own.

mod content;
mod hostile;
mod places;
mod support;
mod watching;
