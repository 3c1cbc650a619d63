//! Remembers: everything that happens in a session, in order, numbered without gaps, each record
//! with the hash of the one before it.
//!
//! [`EventLog`] is what others use. Below it a [`Store`] keeps records: `sqlite` in one file that
//! `sqlite3` can read, `postgres` in a database that several servers share. The database's own
//! journal and checksums frame what is written; what is ours on top is the number, the chain of
//! hashes and the check of both. Beside the records there are [`Document`]s: small named values
//! with a version, in which servers keep what must survive them (sessions, keys).
//!
//! # How an entry becomes a record
//!
//! `payload` folds it, `writer` puts it into the one bounded queue of the log, and the loop in
//! `writer/conduct.rs` has all that waits there written as one transaction. Only after that has
//! been committed is anybody answered. When it cannot be, the same loop decides who waits and who
//! is sent away ([`Patience`]), tries again, and writes a note about it into the sessions that
//! were hit: `{"note": "event_log_not_durable", ...}`.
//!
//! # Large payloads
//!
//! A payload whose JSON has up to 256 KiB stands in its record. Up to 1 MiB it is kept apart, by
//! its digest, and comes back whole. Of a larger one, up to 64 MiB, the large texts come back as
//! references, and so do whole fields where that is not enough, and in the end the payload itself:
//!
//! ```json
//! { "$blob": "<64 hexadecimal digits>", "form": "text", "bytes": 3145728, "head": "<4 KiB>" }
//! ```
//!
//! [`Store::blob`] gives the bytes: a text as it was (`"form": "text"`), or the JSON of a field
//! (`"form": "json"`). Nobody can forge one: a field that was called `$blob` when it came is
//! called `$$blob` in the record, and so on ([`Record::written_payload`] has the name of before).
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

pub use document::{Document, DocumentName, Expected, Selection};
pub use error::LogError;
pub use log::EventLog;
pub use options::{Options, Recovery, Retention};
pub use record::{Digest, Entry, EntryKind, IdempotencyKey, InvalidKey, Record};
pub use store::{Appended, Durability, Health, Patience, Store, Usage};
pub use subscription::Subscription;
pub use transfer::Imports;
pub use verify::{Damage, Verified};
