//! Remembers: everything that happens in a session, in order, numbered without gaps, each record
//! with the hash of the one before it.
//!
//! [`EventLog`] is what others use. Below it a [`Store`] keeps records: `sqlite` in one file that
//! `sqlite3` can read, `postgres` in a database that several servers share. The database's own
//! journal and checksums frame what is written; what is ours on top is the number, the chain of
//! hashes and the check of both. Beside the records there are [`Document`]s: small named values
//! with a version, in which servers keep what must survive them (sessions, keys).
#![deny(missing_docs)]

mod chain;
mod document;
mod ends;
mod error;
mod log;
mod options;
mod page;
mod payload;
mod postgres;
mod quota;
mod record;
mod sqlite;
mod store;
mod subscription;
mod transfer;
mod verify;
mod writer;

pub use document::{Document, DocumentName, Expected};
pub use error::LogError;
pub use log::EventLog;
pub use options::{Options, Recovery, Retention};
pub use record::{Digest, Entry, EntryKind, IdempotencyKey, InvalidKey, Record};
pub use store::{Appended, Durability, Health, Patience, Store, Usage};
pub use subscription::Subscription;
pub use transfer::Imports;
pub use verify::{Damage, Verified};
