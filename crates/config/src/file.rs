//! The configuration file: which one it is, and what it says.

mod locate;
mod position;
mod read;

pub(crate) use locate::locate;
pub(crate) use read::apply;
