//! What the HTTP surface asks of the executor for files.

use super::{
    ChangeStream, DirectoryRequest, EntryPage, FileContent, FileError, FileStatus, ListRequest,
    ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
};
use crate::{BoxFuture, ByteStream};

/// Work on files as bytes.
///
/// Every method may be called from many connections at once. A dropped future leaves nothing
/// half done: a write is complete or did not happen.
pub trait FileService: Send + Sync {
    /// What is at a path.
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, FileError>>;

    /// Opens a regular file and streams its bytes. Anything else is refused, never waited for.
    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, FileError>>;

    /// Puts a stream into a file and returns what is there then.
    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, FileError>>;

    /// A page of a directory.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, FileError>>;

    /// Removes a file, a link or a directory.
    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), FileError>>;

    /// Gives something another name on the same file system.
    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), FileError>>;

    /// Makes a directory and returns what it is like.
    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, FileError>>;

    /// Tells of changes in a directory. It is watched by the time this returns.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, FileError>>;
}
