//! The files of a sandbox as bytes: asked of its executor, as long as the sandbox runs.

use std::path::Path;

use zareba_runtime::{RuntimeError, SandboxFiles};
use zareba_wire::{
    BoxFuture, ByteStream, Download, Upload,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest, Parents,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use super::NativeSandbox;
use crate::{
    copy,
    link::{Link, LinkError},
    native::{Spooled, inodes_of},
};

impl NativeSandbox {
    /// Asks the executor for work on files, in a task that ends when the sandbox is closed.
    fn ask<'a, T, F>(
        &'a self,
        deed: &'static str,
        work: impl FnOnce(Link) -> F,
    ) -> BoxFuture<'a, Result<T, RuntimeError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LinkError>> + Send + 'static,
    {
        Box::pin(self.inside(deed, work(self.parts.link.clone())))
    }
}

impl SandboxFiles for NativeSandbox {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        self.ask(
            "look at a file",
            |link| async move { link.stat(request).await },
        )
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, RuntimeError>> {
        self.ask(
            "read a file",
            |link| async move { link.read(request).await },
        )
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        let Some(room) = self.room() else {
            return self.ask("write a file", |link| async move {
                link.write(request, content).await
            });
        };
        Box::pin(async move {
            let made = match request.parents {
                Parents::Make => inodes_of(Path::new(&request.path)),
                Parents::Require => 1,
            };
            let (content, gate) = room.gate(content, Spooled::Named, made).await?;
            let written = self.ask("write a file", |link| async move {
                link.write(request, content).await
            });
            gate.outcome(written.await)
        })
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, RuntimeError>> {
        self.ask("list a directory", |link| async move {
            link.list(request).await
        })
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.ask(
            "remove a file",
            |link| async move { link.remove(request).await },
        )
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.ask(
            "rename a file",
            |link| async move { link.rename(request).await },
        )
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        let made = match request.parents {
            Parents::Make => inodes_of(Path::new(&request.path)),
            Parents::Require => 1,
        };
        Box::pin(async move {
            if let Some(room) = self.room() {
                room.admit(0, made).await?;
            }
            let made = self.ask("make a directory", |link| async move {
                link.make_directory(request).await
            });
            made.await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, RuntimeError>> {
        self.ask("watch a directory", |link| async move {
            link.watch(request).await
        })
    }

    fn upload(
        &self,
        mut request: Upload,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        request.destination = self.inner(&request.destination);
        let (link, path) = (self.parts.link.clone(), request.destination.clone());
        Box::pin(async move {
            let (content, gate) = match self.room() {
                Some(room) => {
                    request.room = Some(room.left().await);
                    // An archive has no name while it is unpacked.
                    let made = inodes_of(&request.destination);
                    let (content, gate) = room.gate(content, Spooled::Unnamed, made).await?;
                    (content, Some(gate))
                }
                None => (content, None),
            };
            let stored = self.transfer(async move {
                let stored = link.upload(request, content).await;
                stored.map_err(|error| copy::failed(&path, error.class(), error))
            });
            let stored = stored.await;
            match gate {
                Some(gate) => gate.outcome(stored),
                None => stored,
            }
        })
    }

    fn download(&self, mut request: Download) -> BoxFuture<'_, Result<ByteStream, RuntimeError>> {
        request.path = self.inner(&request.path);
        let (link, path) = (self.parts.link.clone(), request.path.clone());
        Box::pin(self.transfer(async move {
            let packed = link.download(request).await;
            packed.map_err(|error| copy::failed(&path, error.class(), error))
        }))
    }
}
