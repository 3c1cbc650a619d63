//! Files as bytes, by a call or a request.

use zareba_wire::{
    ActionService as _, ByteStream,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use super::{Link, LinkError, upgrade};

/// Asks whichever end there is for the same thing.
macro_rules! ask {
    ($link:expr, $by_call:ident, $by_request:ident, $request:expr $(, $content:expr)?) => {
        match $link {
            Link::Call(executor) => {
                let executor = upgrade(executor)?;
                let files = executor.files().ok_or(LinkError::Ended)?;
                Ok(files.$by_call($request $(, $content)?).await?)
            }
            Link::Request(client) => Ok(client.$by_request(&$request $(, $content)?).await?),
        }
    };
}

impl Link {
    pub(crate) async fn stat(&self, request: StatRequest) -> Result<FileStatus, LinkError> {
        ask!(self, stat, stat_file, request)
    }

    pub(crate) async fn read(&self, request: ReadRequest) -> Result<FileContent, LinkError> {
        ask!(self, read, read_file, request)
    }

    pub(crate) async fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> Result<FileStatus, LinkError> {
        ask!(self, write, write_file, request, content)
    }

    pub(crate) async fn list(&self, request: ListRequest) -> Result<EntryPage, LinkError> {
        ask!(self, list, list_directory, request)
    }

    pub(crate) async fn remove(&self, request: RemoveRequest) -> Result<(), LinkError> {
        ask!(self, remove, remove_file, request)
    }

    pub(crate) async fn rename(&self, request: RenameRequest) -> Result<(), LinkError> {
        ask!(self, rename, rename_file, request)
    }

    pub(crate) async fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> Result<FileStatus, LinkError> {
        ask!(self, make_directory, make_directory, request)
    }

    pub(crate) async fn watch(&self, request: WatchRequest) -> Result<ChangeStream, LinkError> {
        ask!(self, watch, watch_files, request)
    }
}
