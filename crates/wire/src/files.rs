//! Files as bytes: what host and executor say of them beside actions.
//!
//! An action reads and writes text for an agent; this is for people and programs that want a file
//! as it is: a range of it, a stream into it, what a directory holds, what changes below one.
//! Paths are text in which a name that is not UTF-8 is escaped, as listings show it; a relative
//! path is meant from the working directory.

mod change;
mod failure;
mod json;
mod request;
mod service;
mod status;
mod words;

pub use change::{ChangeStream, FileChange};
pub use failure::{FileError, FileFailure};
pub use request::{
    ByteRange, Depth, Digest, DirectoryRequest, Existing, Expected, LIST_LIMIT_MAX, Links,
    ListRequest, Parents, ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest,
    WriteRequest,
};
pub use service::FileService;
pub use status::{EntryPage, FileContent, FileEntry, FileKind, FileStatus};

pub(crate) use json::Body;
