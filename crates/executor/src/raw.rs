//! Files as bytes: ranges, streams, listings and changes, beside what actions do.
//!
//! The same lookups as everywhere (`files`): a path becomes an open file or an open directory and
//! a name in it once, within what may be reached, and that is what is worked on. Work that may
//! block is on threads that may; content moves in pieces, so that its size does not matter.

mod change;
mod digest;
mod failure;
mod list;
mod read;
mod status;
mod watch;
mod write;

use std::{ffi::OsString, os::fd::OwnedFd, sync::Arc};

use tokio::{sync::Semaphore, task::spawn_blocking};
use zareba_wire::{
    BoxFuture, ByteStream,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileError, FileFailure,
        FileService, FileStatus, ListRequest, ReadRequest, RemoveRequest, RenameRequest,
        StatRequest, WatchRequest, WriteRequest,
    },
};

use self::failure::{invalid_path, refused};
use crate::files::{FilePath, Reach, Workspace};

/// Watches at a time. Each holds kernel memory for every directory below it.
const WATCHES_MAX: usize = 32;

/// Work on files as bytes.
#[derive(Clone, Debug)]
pub(crate) struct RawFiles {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workspace: Arc<Workspace>,
    reach: Arc<Reach>,
    watches: Arc<Semaphore>,
}

/// A name in an open directory: links at the end of a path are not followed.
#[derive(Debug)]
struct Place {
    directory: OwnedFd,
    name: OsString,
    shown: String,
}

impl RawFiles {
    /// Works on what may be reached, from the workspace's directory.
    pub(crate) fn new(workspace: Arc<Workspace>, reach: Arc<Reach>) -> Self {
        Self {
            shared: Arc::new(Shared {
                workspace,
                reach,
                watches: Arc::new(Semaphore::new(WATCHES_MAX)),
            }),
        }
    }

    /// Runs work on a thread that may block. When the caller is dropped meanwhile, the work is
    /// completed all the same.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let shared = Arc::clone(&self.shared);
        off_thread(move || work(&shared)).await
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            tracing::error!(%error, "work on a file ended early");
            let message = "the work on the file was interrupted";
            Err(FileError::new(FileFailure::Internal, message))
        }
    }
}

impl Shared {
    /// The path that a text means.
    fn locate(&self, path: &str) -> Result<FilePath, FileError> {
        FilePath::locate(path, self.workspace.working_dir()).map_err(refused)
    }

    /// The directory that a path is in, and its name there.
    fn place(&self, path: &FilePath) -> Result<Place, FileError> {
        let (Some(parent), Some(name)) = (path.as_path().parent(), path.as_path().file_name())
        else {
            return Err(invalid_path(path.shown(), "does not end with a name"));
        };
        let directory = self.reach.open_directory(parent);
        let directory =
            directory.map_err(|errno| refused(self.reach.failure(errno, path.shown())))?;
        Ok(Place {
            directory,
            name: name.to_owned(),
            shown: path.shown().to_owned(),
        })
    }
}

impl FileService for RawFiles {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, FileError>> {
        Box::pin(self.blocking(move |shared| shared.stat(&request)))
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, FileError>> {
        Box::pin(self.blocking(move |shared| shared.read(&request)))
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, FileError>> {
        Box::pin(write::write(Arc::clone(&self.shared), request, content))
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, FileError>> {
        Box::pin(self.blocking(move |shared| shared.list(&request)))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), FileError>> {
        Box::pin(self.blocking(move |shared| shared.remove(&request)))
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), FileError>> {
        Box::pin(self.blocking(move |shared| shared.rename(&request)))
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, FileError>> {
        Box::pin(self.blocking(move |shared| shared.make_directory(&request)))
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, FileError>> {
        Box::pin(watch::watch(Arc::clone(&self.shared), request))
    }
}

#[cfg(test)]
mod tests;
