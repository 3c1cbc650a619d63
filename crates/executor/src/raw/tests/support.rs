//! A workspace `w` in a directory of its own, and short ways to ask for things.

use std::{
    fs,
    future::poll_fn,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tempfile::TempDir;
use zareba_wire::{
    ByteStream,
    files::{
        ByteRange, Depth, Digest, EntryPage, Expected, FileContent, FileError, FileFailure,
        FileService as _, FileStatus, Links, ListRequest, Parents, ReadRequest, RemoveRequest,
        StatRequest, WriteRequest,
    },
};

use crate::{
    Owner,
    files::{Reach, Workspace, WorkspaceSettings},
    raw::RawFiles,
};

pub(super) struct Room {
    outer: TempDir,
    pub(super) files: RawFiles,
}

impl Room {
    /// With the whole file system in reach.
    pub(super) fn open() -> Self {
        Self::new(|_| Reach::WholeFilesystem)
    }

    /// With nothing in reach but the workspace.
    pub(super) fn enclosed() -> Self {
        Self::new(|root| Reach::beneath(root).unwrap())
    }

    fn new(reach: impl FnOnce(&std::path::Path) -> Reach) -> Self {
        let outer = tempfile::tempdir().unwrap();
        let working_dir = outer.path().join("w");
        fs::create_dir(&working_dir).unwrap();
        let reach = Arc::new(reach(&working_dir));
        let workspace = Workspace::new(WorkspaceSettings {
            working_dir,
            reach: Arc::clone(&reach),
            owner: Owner::Ourselves,
        });
        Self {
            outer,
            files: RawFiles::new(Arc::new(workspace), reach),
        }
    }

    /// The directory around the workspace.
    pub(super) fn outside(&self) -> PathBuf {
        self.outer.path().to_owned()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join("w").join(name)
    }

    pub(super) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(super) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names in the workspace, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(super) async fn open_file(
        &self,
        path: &str,
        range: Option<ByteRange>,
    ) -> Result<FileContent, FileError> {
        let request = ReadRequest {
            path: path.to_owned(),
            range,
            digest: Digest::Skip,
        };
        self.files.read(request).await
    }

    pub(super) async fn read(
        &self,
        path: &str,
        range: Option<ByteRange>,
    ) -> Result<Vec<u8>, FileError> {
        let content = self.open_file(path, range).await?;
        let length = content.length;
        let bytes = collect(content.stream).await.unwrap();
        assert_eq!(bytes.len() as u64, length);
        Ok(bytes)
    }

    pub(super) async fn write(&self, path: &str, content: &str) -> Result<FileStatus, FileError> {
        self.write_if(path, content, None).await
    }

    pub(super) async fn write_if(
        &self,
        path: &str,
        content: &str,
        expected: Option<Expected>,
    ) -> Result<FileStatus, FileError> {
        let request = WriteRequest {
            expected,
            ..write_to(path)
        };
        self.files.write(request, pieces(&[content])).await
    }

    pub(super) async fn stat(&self, path: &str, links: Links) -> Result<FileStatus, FileError> {
        let request = StatRequest {
            path: path.to_owned(),
            links,
            digest: Digest::Skip,
        };
        self.files.stat(request).await
    }

    pub(super) async fn list(
        &self,
        path: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<EntryPage, FileError> {
        let request = ListRequest {
            path: path.to_owned(),
            after: after.map(str::to_owned),
            limit,
        };
        self.files.list(request).await
    }

    pub(super) async fn remove(&self, path: &str, depth: Depth) -> Result<(), FileError> {
        let path = path.to_owned();
        self.files.remove(RemoveRequest { path, depth }).await
    }
}

pub(super) fn write_to(path: &str) -> WriteRequest {
    WriteRequest {
        path: path.to_owned(),
        mode: None,
        parents: Parents::Require,
        expected: None,
    }
}

/// The reason of a failure.
pub(super) fn reason<T: std::fmt::Debug>(result: Result<T, FileError>) -> FileFailure {
    result.unwrap_err().reason
}

/// A stream of these pieces.
pub(super) fn pieces(pieces: &[&str]) -> ByteStream {
    let pieces = pieces
        .iter()
        .map(|piece| Ok(Bytes::from((*piece).to_owned())));
    stream(pieces.collect::<Vec<_>>().into_iter())
}

pub(super) fn stream(
    pieces: impl Iterator<Item = std::io::Result<Bytes>> + Send + Unpin + 'static,
) -> ByteStream {
    Box::pin(Pieces(pieces))
}

struct Pieces<I>(I);

impl<I: Iterator<Item = std::io::Result<Bytes>> + Unpin> Stream for Pieces<I> {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

pub(super) async fn next<T>(stream: &mut Pin<Box<dyn Stream<Item = T> + Send>>) -> Option<T> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

pub(super) async fn collect(mut stream: ByteStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = next(&mut stream).await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes)
}
