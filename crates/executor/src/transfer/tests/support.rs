//! Bodies, archives and trees to test with.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    future::poll_fn,
    io::{self, Cursor, Write},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use zareba_wire::{ArchiveFormat, ByteStream, Download, TransferError, Upload, UploadTreatment};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    Owner,
    files::Reach,
    transfer::{
        Transfers,
        budget::ArchiveLimits,
        spool::{Format, Spool},
    },
};

/// A body that asks this function for each piece.
pub(super) fn body_from(
    next: impl FnMut(&mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> + Send + Unpin + 'static,
) -> ByteStream {
    struct Asking<F>(F);
    impl<F> Stream for Asking<F>
    where
        F: FnMut(&mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> + Unpin,
    {
        type Item = io::Result<Bytes>;
        fn poll_next(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            (self.0)(context)
        }
    }
    Box::pin(Asking(next))
}

/// A body of these pieces.
pub(super) fn body(pieces: impl IntoIterator<Item = io::Result<Bytes>>) -> ByteStream {
    let mut pieces: VecDeque<_> = pieces.into_iter().collect();
    body_from(move |_| Poll::Ready(pieces.pop_front()))
}

/// All of a stream.
pub(super) async fn collect(mut stream: ByteStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(piece) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

pub(super) fn request(destination: &Path, name: &str, treatment: UploadTreatment) -> Upload {
    Upload {
        file_name: name.to_owned(),
        destination: destination.to_path_buf(),
        treatment,
        room: None,
    }
}

/// Uploads these bytes and stores or unpacks them.
pub(super) async fn upload(
    destination: &Path,
    name: &str,
    treatment: UploadTreatment,
    content: &[u8],
) -> Result<(), TransferError> {
    let content = Bytes::copy_from_slice(content);
    Transfers::new(Owner::Ourselves)
        .upload(request(destination, name, treatment), body([Ok(content)]))
        .await
}

/// Uploads an archive into a new directory below a fresh one, and expects this refusal and no
/// trace. `DEST` in the reason is that directory.
pub(super) async fn refused(name: &str, archive: &[u8], reason: &str) {
    let root = tempfile::tempdir().unwrap();
    let destination = root.path().join("in");
    let error = upload(&destination, name, UploadTreatment::Unpack, archive)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, TransferError::BadArchive { .. }),
        "{error:?}"
    );
    let reason = reason.replace("DEST", &destination.display().to_string());
    assert_eq!(error.to_string(), reason);
    assert_eq!(snapshot(root.path()), Snapshot::new());
}

/// Unpacks an archive under other caps than those of uploads.
pub(super) fn unpack_within(
    limits: &ArchiveLimits,
    destination: &Path,
    format: Format,
    archive: Vec<u8>,
) -> Result<(), TransferError> {
    let reach = Arc::new(Reach::WholeFilesystem);
    let name = "archive".to_owned();
    let mut spool = Spool::create(destination, name, Owner::Ourselves, &reach)?.unnamed()?;
    spool.write(&[archive.into()])?;
    spool.unpack(format, limits, None)
}

/// The words of a failure.
pub(super) fn words(result: Result<(), TransferError>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

/// Downloads a path.
pub(super) async fn download(path: &Path, format: ArchiveFormat) -> Result<Vec<u8>, TransferError> {
    let stream = Transfers::new(Owner::Ourselves)
        .download(Download {
            path: path.to_path_buf(),
            format,
        })
        .await?;
    Ok(collect(stream).await.unwrap())
}

/// What is in a tree: for each path what it is.
pub(super) type Snapshot = BTreeMap<String, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File { content: Vec<u8>, mode: u32 },
    Link { target: String },
}

/// A file of mode 644.
pub(super) fn file(content: &[u8]) -> Node {
    Node::File {
        content: content.to_vec(),
        mode: 0o644,
    }
}

/// Everything below a directory, hidden files too.
pub(super) fn snapshot(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let node = if metadata.is_dir() {
                directories.push(path.clone());
                Node::Directory
            } else if metadata.is_symlink() {
                Node::Link {
                    target: fs::read_link(&path).unwrap().display().to_string(),
                }
            } else {
                let mode = metadata.permissions().mode() & 0o7777;
                Node::File {
                    content: fs::read(&path).unwrap(),
                    mode,
                }
            };
            snapshot.insert(name.escape_ascii().to_string(), node);
        }
    }
    snapshot
}

/// A snapshot written down.
pub(super) fn tree<const N: usize>(nodes: [(&str, Node); N]) -> Snapshot {
    nodes
        .into_iter()
        .map(|(path, node)| (path.to_owned(), node))
        .collect()
}

/// A zip archive written by `fill`.
pub(super) fn zip_with(fill: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    fill(&mut archive);
    archive.finish().unwrap().into_inner()
}

/// A zip archive of these files.
pub(super) fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    zip_with(|archive| {
        for (name, content) in files {
            archive
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(content).unwrap();
        }
    })
}

/// A tar entry. Names are set raw, so that they may be as bad as wanted.
pub(super) fn tar_entry(kind: tar::EntryType, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

/// A tar archive of these entries.
pub(super) fn tar_of(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = entries.concat();
    archive.resize(archive.len() + 1024, 0);
    archive
}
