//! Logs as files: JSON lines that can be read in again, and the event files of OpenHands.

mod export;
mod import;
mod line;
mod openhands;

pub use import::Imports;
