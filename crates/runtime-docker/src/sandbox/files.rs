//! The files of a sandbox as bytes: asked of the executor in its container, and never of the
//! Engine, whose own ways follow links that programs inside can change meanwhile (DK-5).

use zareba_runtime::{RuntimeError, SandboxFiles};
use zareba_wire::{
    BoxFuture, ByteStream, Download, Upload,
    client::ClientError,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use super::DockerSandbox;
use crate::{copy, door::Link};

impl DockerSandbox {
    /// Asks the executor for work on files, in a task that ends when the sandbox is closed.
    fn ask<'a, T, F>(
        &'a self,
        deed: &'static str,
        work: impl FnOnce(Link) -> F,
    ) -> BoxFuture<'a, Result<T, RuntimeError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        Box::pin(self.inside(deed, work(self.parts.link.clone())))
    }
}

impl SandboxFiles for DockerSandbox {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.ask("look at a file", |link| async move {
            link.client().stat_file(&request).await
        })
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, RuntimeError>> {
        self.ask("read a file", |link| async move {
            link.client().read_file(&request).await
        })
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.ask("write a file", |link| async move {
            link.client().write_file(&request, content).await
        })
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, RuntimeError>> {
        self.ask("list a directory", |link| async move {
            link.client().list_directory(&request).await
        })
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.ask("remove a file", |link| async move {
            link.client().remove_file(&request).await
        })
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.ask("rename a file", |link| async move {
            link.client().rename_file(&request).await
        })
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.ask("make a directory", |link| async move {
            link.client().make_directory(&request).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, RuntimeError>> {
        self.ask("watch a directory", |link| async move {
            link.client().watch_files(&request).await
        })
    }

    fn upload(
        &self,
        mut request: Upload,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        request.destination = self.inner(&request.destination);
        let link = self.parts.link.clone();
        Box::pin(self.transfer(async move {
            copy::send(link.client(), &request, content, &request.destination).await
        }))
    }

    fn download(&self, mut request: Download) -> BoxFuture<'_, Result<ByteStream, RuntimeError>> {
        request.path = self.inner(&request.path);
        let link = self.parts.link.clone();
        Box::pin(self.transfer(async move {
            let packed = link.client().download(&request).await;
            packed.map_err(|error| copy::failed(&request.path, error.class(), error))
        }))
    }
}
