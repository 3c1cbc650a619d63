//! The directory that a pull fills: an OCI image layout.
//!
//! A file appears under its name when it is complete and checked, and `index.json` appears last,
//! so that whatever is cut short is not a layout and holds nothing wrong. Calls here are short
//! enough to be made from async code; the contents of layers go through [`Sink`].

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempPath};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Platform, PullError, documents::Descriptor};
use crate::{Digest, Hasher, ImageName};

/// Pieces of a body that may wait for the disk; each is one read from a socket.
const PIECES_MAX: usize = 16;

/// An image layout that is being filled.
#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
    blobs: PathBuf,
}

impl Layout {
    pub(super) fn create(root: &Path) -> Result<Self, PullError> {
        let layout = Self {
            root: root.to_owned(),
            blobs: root.join("blobs/sha256"),
        };
        fs::create_dir_all(&layout.blobs).map_err(cannot_write(&layout.blobs))?;
        layout.put_file("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}))?;
        Ok(layout)
    }

    /// Keeps a document that has been checked.
    pub(super) fn put(&self, digest: &Digest, content: &[u8]) -> Result<(), PullError> {
        write_whole(&self.blobs, &self.path(digest), content)
    }

    /// Opens the way for content that will be checked while it comes.
    pub(super) fn sink(&self, digest: &Digest) -> Result<Sink, PullError> {
        let path = self.path(digest);
        let file = NamedTempFile::new_in(&self.blobs).map_err(cannot_write(&path))?;
        Ok(Sink::new(file, path))
    }

    /// Makes the directory a layout of one image.
    pub(super) fn finish(
        &self,
        name: &ImageName,
        manifest: &Descriptor,
        platform: &Platform,
    ) -> Result<(), PullError> {
        let mut entry = json!({
            "mediaType": manifest.media_type,
            "digest": manifest.digest.to_string(),
            "size": manifest.size,
            "platform": {"os": platform.os(), "architecture": platform.architecture()},
        });
        if let (Some(tag), Some(entry)) = (name.tag(), entry.as_object_mut()) {
            let annotations = json!({"org.opencontainers.image.ref.name": tag});
            entry.insert("annotations".to_owned(), annotations);
        }
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [entry],
        });
        self.put_file("index.json", &index)
    }

    fn put_file(&self, name: &str, content: &Value) -> Result<(), PullError> {
        let path = self.root.join(name);
        write_whole(&self.root, &path, content.to_string().as_bytes())
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.blobs.join(digest.hex())
    }
}

/// Content on its way to the disk.
///
/// Writing and hashing are done on a thread for blocking work, which has nothing but the open
/// file. Dropping the sink therefore removes the file at once, and the thread ends after the
/// pieces that it has.
#[derive(Debug)]
pub(super) struct Sink {
    pieces: mpsc::Sender<Bytes>,
    writer: JoinHandle<io::Result<Digest>>,
    unfinished: TempPath,
    path: PathBuf,
}

/// Content that is on the disk, and not yet under its name.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) digest: Digest,
    unfinished: TempPath,
    path: PathBuf,
}

impl Sink {
    fn new(file: NamedTempFile, path: PathBuf) -> Self {
        let (file, unfinished) = file.into_parts();
        let (pieces, incoming) = mpsc::channel(PIECES_MAX);
        Self {
            pieces,
            writer: tokio::task::spawn_blocking(|| write_pieces(file, incoming)),
            unfinished,
            path,
        }
    }

    pub(super) async fn write(&mut self, piece: Bytes) -> Result<(), PullError> {
        if self.pieces.send(piece).await.is_ok() {
            return Ok(());
        }
        // It only stops taking pieces when it could not write one.
        let error = match (&mut self.writer).await {
            Ok(Ok(_)) => io::Error::other("the writer ended early"),
            Ok(Err(error)) => error,
            Err(error) => io::Error::other(error),
        };
        Err(cannot_write(&self.path)(error))
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) -> Result<Written, PullError> {
        let Self {
            pieces,
            writer,
            unfinished,
            path,
        } = self;
        drop(pieces);
        let digest = match writer.await {
            Ok(written) => written,
            Err(error) => Err(io::Error::other(error)),
        }
        .map_err(cannot_write(&path))?;
        Ok(Written {
            digest,
            unfinished,
            path,
        })
    }
}

impl Written {
    /// Gives the content the name that it was fetched under; only for content with that digest.
    pub(super) fn keep(self) -> Result<(), PullError> {
        self.unfinished
            .persist(&self.path)
            .map_err(|error| cannot_write(&self.path)(error.error))
    }
}

fn write_pieces(mut file: File, mut pieces: mpsc::Receiver<Bytes>) -> io::Result<Digest> {
    let mut hasher = Hasher::default();
    while let Some(piece) = pieces.blocking_recv() {
        hasher.update(&piece);
        file.write_all(&piece)?;
    }
    Ok(hasher.finish())
}

fn write_whole(directory: &Path, path: &Path, content: &[u8]) -> Result<(), PullError> {
    let written = NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(content)?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(cannot_write(path))
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> PullError {
    let path = path.to_owned();
    move |source| PullError::Write { path, source }
}
