//! The entry points: check a request, then do its work on blocking threads.

use std::{future::poll_fn, io, sync::Arc};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::spawn_blocking};
use zareba_wire::{ByteStream, Download, TransferError, Upload, UploadTreatment};

use super::{
    budget::{ArchiveLimits, Taken},
    failure::invalid,
    outlet::channel,
    pack::pack,
    source::{LinkPolicy, Source},
    spool::{Format, Spool},
};
use crate::{Owner, files::Reach};

/// Bytes of a body that are gathered before a thread is asked to write them. A slow client thus
/// occupies memory of this size and no thread.
const BATCH_BYTES: usize = 1024 * 1024;
/// Downloads at a time. Each occupies a thread as long as its client reads; further ones wait.
const DOWNLOADS_MAX: usize = 64;

/// Uploads and downloads.
#[derive(Clone, Debug)]
pub struct Transfers {
    owner: Owner,
    reach: Arc<Reach>,
    downloads: Arc<Semaphore>,
    unpacked: Taken,
}

impl Transfers {
    /// Transfers to and from wherever the process may; new files will belong to `owner`.
    pub fn new(owner: Owner) -> Self {
        Self::within(Arc::new(Reach::WholeFilesystem), owner)
    }

    /// Transfers that stay within what may be reached.
    pub(crate) fn within(reach: Arc<Reach>, owner: Owner) -> Self {
        Self {
            owner,
            reach,
            downloads: Arc::new(Semaphore::new(DOWNLOADS_MAX)),
            unpacked: Taken::default(),
        }
    }

    /// Stores an uploaded file, or unpacks an uploaded archive.
    ///
    /// Dropped before the body has arrived, it leaves nothing behind; after that the upload is
    /// completed all the same.
    pub async fn upload(&self, request: Upload, mut body: ByteStream) -> Result<(), TransferError> {
        if !request.destination.is_absolute() {
            return Err(invalid("Destination must be an absolute path"));
        }
        let name = last_component(&request.file_name)?;
        let format = format_of(name, request.treatment)?;
        let room = request.room.map(|room| {
            let label = request.destination.join(name);
            self.unpacked.room(room, label)
        });
        let (reach, owner, name) = (Arc::clone(&self.reach), self.owner, name.to_owned());
        let mut spool = blocking(move || {
            let spool = Spool::create(&request.destination, name, owner, &reach)?;
            if format.is_some() {
                spool.unnamed()
            } else {
                Ok(spool)
            }
        })
        .await?;
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        while let Some(piece) = poll_fn(|context| body.as_mut().poll_next(context)).await {
            let piece = piece.map_err(|source| TransferError::Io {
                message: "the upload broke off".to_owned(),
                source,
            })?;
            batch_bytes += piece.len();
            batch.push(piece);
            if batch_bytes >= BATCH_BYTES {
                spool = write(spool, std::mem::take(&mut batch)).await?;
                batch_bytes = 0;
            }
        }
        spool = write(spool, batch).await?;
        blocking(move || match format {
            None => spool.store(),
            Some(format) => spool.unpack(format, &ArchiveLimits::UPLOAD, room),
        })
        .await
    }

    /// Packs a file or directory and streams the archive. Dropping the stream ends the work.
    /// A tree of which something may not be read is refused as a whole, before anything is sent.
    pub async fn download(&self, request: Download) -> Result<ByteStream, TransferError> {
        if !request.path.is_absolute() {
            return Err(invalid("Path must be an absolute path"));
        }
        let Download { path, format } = request;
        let reach = Arc::clone(&self.reach);
        let permit = Arc::clone(&self.downloads).acquire_owned().await;
        let source = blocking(move || {
            let source = Source::open(&path, &reach)?;
            source.check(LinkPolicy::of(format))?;
            Ok(source)
        })
        .await?;
        let (sender, chunks) = channel();
        spawn_blocking(move || {
            let _permit = permit;
            pack(source, format, &sender);
        });
        Ok(Box::pin(chunks))
    }
}

/// The name to store under: what comes last in the name the client gave.
fn last_component(name: &str) -> Result<&str, TransferError> {
    let last = name.rsplit('/').next().unwrap_or(name);
    if name.contains('\0') || matches!(last, "" | "." | "..") {
        return Err(invalid(format!(
            "Invalid file name: '{}'",
            name.escape_debug()
        )));
    }
    Ok(last)
}

/// Whether and how an upload is unpacked. A zip always is, as OpenHands does.
fn format_of(name: &str, treatment: UploadTreatment) -> Result<Option<Format>, TransferError> {
    match treatment {
        _ if name.ends_with(".zip") => Ok(Some(Format::Zip)),
        UploadTreatment::Store => Ok(None),
        UploadTreatment::Unpack if name.ends_with(".tar") => Ok(Some(Format::Tar)),
        UploadTreatment::Unpack => Err(invalid("Recursive uploads must be zip files")),
    }
}

async fn write(mut spool: Spool, batch: Vec<Bytes>) -> Result<Spool, TransferError> {
    blocking(move || spool.write(&batch).map(|()| spool)).await
}

/// Runs work on a blocking thread. When the caller is dropped meanwhile, the work is completed
/// and its result dropped, which cleans up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TransferError> + Send + 'static,
) -> Result<T, TransferError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(TransferError::Io {
            message: "the transfer was interrupted".to_owned(),
            source: io::Error::other(error),
        }),
    }
}
