//! The files of a remote sandbox as bytes, for those who have a way to them.

use zareba_runtime::{RuntimeError, SandboxFiles};
use zareba_wire::{
    BoxFuture, ByteStream, Download, Upload,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use crate::{
    link::{FileLink, LinkError},
    sandbox::Place,
};

impl Place {
    /// Works on a file by the link's own way.
    fn with_files<'a, T: Send + 'a>(
        &'a self,
        deed: &'static str,
        work: impl FnOnce(&'a dyn FileLink) -> BoxFuture<'a, Result<T, LinkError>>,
    ) -> BoxFuture<'a, Result<T, RuntimeError>> {
        match self.parts.link.files() {
            Some(files) => Box::pin(self.inside(deed, work(files))),
            None => Box::pin(self.inside(deed, async { Err(LinkError::Unsupported) })),
        }
    }
}

impl SandboxFiles for Place {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.with_files("look at a file", |files| files.stat(request))
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, RuntimeError>> {
        self.with_files("read a file", |files| files.read(request))
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.with_files("write a file", |files| files.write(request, content))
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, RuntimeError>> {
        self.with_files("list a directory", |files| files.list(request))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.with_files("remove a file", |files| files.remove(request))
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.with_files("rename a file", |files| files.rename(request))
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.with_files("make a directory", |files| files.make_directory(request))
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, RuntimeError>> {
        self.with_files("watch a directory", |files| files.watch(request))
    }

    fn upload(
        &self,
        request: Upload,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let stored = self.parts.link.upload(request, content);
        Box::pin(self.inside("store files", stored))
    }

    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, RuntimeError>> {
        let packed = self.parts.link.download(request);
        Box::pin(self.inside("pack files", packed))
    }
}
