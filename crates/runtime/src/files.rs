//! [`SandboxFiles`]: the files of a sandbox as bytes.

use zareba_wire::{
    BoxFuture, ByteStream, Download, Upload,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use crate::RuntimeError;

/// The files of a sandbox, for people and programs that want them as they are.
///
/// The work is done inside, as the sandbox's user, so that nothing can be reached that a program
/// inside could not reach. What comes out was written by an attacker, also a status or a name.
/// Refusals are [`RuntimeError::File`] with a reason; a stream that breaks off later fails as a
/// stream. Relative paths are meant from the workspace.
///
/// Every method may be called from many tasks at once. A dropped future leaves nothing half done.
pub trait SandboxFiles: Send + Sync {
    /// What is at a path.
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, RuntimeError>>;

    /// Opens a regular file and streams its bytes.
    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, RuntimeError>>;

    /// Puts a stream into a file and returns what is there then. The file is the old one or the
    /// new one at any time.
    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>>;

    /// A page of a directory.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, RuntimeError>>;

    /// Removes a file, a link or a directory.
    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), RuntimeError>>;

    /// Gives something another name.
    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), RuntimeError>>;

    /// Makes a directory and returns what it is like.
    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>>;

    /// Tells of changes in a directory until the stream is dropped.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, RuntimeError>>;

    /// Stores a file, or unpacks an archive. Nothing of a broken archive is kept.
    fn upload(
        &self,
        request: Upload,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<(), RuntimeError>>;

    /// Packs a file or a directory and streams the archive.
    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, RuntimeError>>;
}
