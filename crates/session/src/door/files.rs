//! [`SandboxFiles`] behind the door: every method of the trait, each with the deed that it is.

use zareba_runtime::{RuntimeError, Sandbox as _, SandboxFiles};
use zareba_wire::{
    BoxFuture, ByteStream, Download, Upload,
    files::{
        ChangeStream, Depth, DirectoryRequest, EntryPage, FileContent, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use super::{
    AdmittedSandbox,
    measure::{self, Measured},
};
use crate::Deed;

impl AdmittedSandbox {
    /// Does a deed that sends content along, whose size and SHA-256 the log keeps.
    async fn send<'a, T>(
        &'a self,
        deed: Deed,
        measured: Measured,
        work: impl FnOnce() -> BoxFuture<'a, Result<T, RuntimeError>> + Send,
    ) -> Result<T, RuntimeError> {
        let tell = move |entry: &mut _| measured.tell(entry);
        self.door.perform(deed, self.id(), work, tell).await
    }

    async fn read_file(&self, request: ReadRequest) -> Result<FileContent, RuntimeError> {
        let deed = Deed::Read {
            path: request.path.clone(),
        };
        self.door.judge(&deed, Some(self.id())).await?;
        let read = self.sandbox.files()?.read(request).await;
        let bytes = read.as_ref().map_or(0, |content| content.length);
        let done = read.as_ref().map(drop).map_err(super::word);
        self.door.count(&deed, done, bytes);
        read
    }

    async fn pack(&self, request: Download) -> Result<ByteStream, RuntimeError> {
        let deed = Deed::Download {
            path: request.path.to_string_lossy().into_owned(),
        };
        self.door.judge(&deed, Some(self.id())).await?;
        match self.sandbox.files()?.download(request).await {
            Ok(archive) => {
                let door = self.door.clone();
                let told = move |measured: &Measured| door.count_measured(&deed, measured);
                Ok(measure::on_drop(archive, told))
            }
            Err(error) => {
                self.door.count(&deed, Err(super::word(&error)), 0);
                Err(error)
            }
        }
    }
}

impl SandboxFiles for AdmittedSandbox {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Stat {
                path: request.path.clone(),
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.stat(request)).await
        })
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, RuntimeError>> {
        Box::pin(self.read_file(request))
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Write {
                path: request.path.clone(),
            };
            let measured = Measured::default();
            let (files, content) = (self.sandbox.files()?, measured.through(content));
            self.send(deed, measured, || files.write(request, content))
                .await
        })
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::List {
                path: request.path.clone(),
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.list(request)).await
        })
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Remove {
                path: request.path.clone(),
                is_recursive: request.depth == Depth::Tree,
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.remove(request)).await
        })
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Rename {
                from: request.from.clone(),
                to: request.to.clone(),
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.rename(request)).await
        })
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::MakeDirectory {
                path: request.path.clone(),
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.make_directory(request)).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Watch {
                path: request.path.clone(),
            };
            let files = self.sandbox.files()?;
            self.perform(deed, || files.watch(request)).await
        })
    }

    fn upload(
        &self,
        request: Upload,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let deed = Deed::Upload {
                path: request.destination.to_string_lossy().into_owned(),
                file_name: request.file_name.clone(),
            };
            let measured = Measured::default();
            let (files, content) = (self.sandbox.files()?, measured.through(content));
            self.send(deed, measured, || files.upload(request, content))
                .await
        })
    }

    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, RuntimeError>> {
        Box::pin(self.pack(request))
    }
}
