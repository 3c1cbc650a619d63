//! Moves files in and out: uploads, downloads, and the archives both of them use.
//!
//! An upload is spooled beside its destination and becomes visible in one step; an archive is
//! unpacked into a hidden directory there and merged only when all of it was good. A download is
//! packed by a blocking thread into a bounded channel, so its size does not matter. All work on
//! paths goes through open directories, found by the same lookups as in `files`: what is checked
//! is what is used, and a workspace with walls has them here too.
//!
//! Reading order: `transfers` (the entry points), then `spool`, `staging` and `merge` for the way
//! in, `source`, `pack` and `outlet` for the way out.

mod transfers;

mod destination;
mod spool;

mod budget;
mod entry_path;
mod merge;
mod staging;
mod untar;
mod unzip;

mod outlet;
mod pack;
mod source;

mod failure;

pub use transfers::Transfers;

#[cfg(test)]
mod tests;
