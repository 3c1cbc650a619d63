//! Copying in and out: an archive is packed at one end and unpacked at the other while it is
//! being made, so that its size does not matter.
//!
//! Both ends are the executor's own transfers, so that what comes out of a sandbox meets the
//! same checks on this side as what goes in does on the other.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_executor::{Owner, Transfers};
use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;
use zareba_wire::{ArchiveFormat, Download, TransferError, Upload, UploadTreatment};

use crate::{
    link::{Link, class_of},
    native::{Room, Spooled, inodes_of},
};

/// Any name will do that says what it is.
const ARCHIVE: &str = "copy.tar";

/// Copies a file or directory of this machine into a directory inside, as far as there is room for it.
pub(crate) async fn copy_in(
    link: &Link,
    from: &Path,
    to: PathBuf,
    room: Option<Arc<Room>>,
) -> Result<(), RuntimeError> {
    let (from, to) = tokio::task::spawn_blocking({
        let (from, to) = (from.to_owned(), to.clone());
        move || source(&from, to)
    })
    .await
    .map_err(|error| failed(from, ErrorClass::Internal, error))??;
    let packed = here().download(archive_of(from.clone())).await;
    let packed = packed.map_err(|error| failed(&from, class_of(&error), error))?;
    let mut upload = archive_to(to);
    let Some(room) = room else {
        let sent = link.upload(upload, packed).await;
        return sent.map_err(|error| failed(&from, error.class(), error));
    };
    let made = inodes_of(&upload.destination);
    let (packed, gate) = room.gate(packed, Spooled::Unnamed, made).await?;
    upload.room = Some(room.left().await);
    let sent = link.upload(upload, packed).await;
    gate.outcome(sent.map_err(|error| failed(&from, error.class(), error)))
}

/// Copies what a directory inside holds, or one file, into a directory of this machine.
pub(crate) async fn copy_out(link: &Link, from: PathBuf, to: &Path) -> Result<(), RuntimeError> {
    let to = std::path::absolute(to).map_err(|error| failed(to, ErrorClass::Invalid, error))?;
    let packed = link.download(archive_of(from.clone())).await;
    let packed = packed.map_err(|error| failed(&from, error.class(), error))?;
    let stored = here().upload(archive_to(to), packed).await;
    stored.map_err(|error| failed(&from, class_of(&error), error))
}

/// This machine's end: new files are ours.
fn here() -> Transfers {
    Transfers::new(Owner::Ourselves)
}

/// What is copied, by its real name, and where to: a directory keeps its name.
fn source(from: &Path, to: PathBuf) -> Result<(PathBuf, PathBuf), RuntimeError> {
    let real = std::fs::canonicalize(from)
        .map_err(|source| {
            let message = format!("cannot find `{}`", from.display());
            TransferError::Io { message, source }
        })
        .map_err(|error| failed(from, class_of(&error), error))?;
    if !real.is_dir() {
        // By the name that was given: a link to a file is copied under the link's name.
        let named = std::path::absolute(from);
        let named = named.map_err(|error| failed(from, ErrorClass::Invalid, error))?;
        return Ok((named, to));
    }
    let to = match real.file_name() {
        Some(name) => to.join(name),
        None => to,
    };
    Ok((real, to))
}

fn archive_of(path: PathBuf) -> Download {
    Download {
        path,
        format: ArchiveFormat::Tar,
    }
}

fn archive_to(destination: PathBuf) -> Upload {
    Upload {
        file_name: ARCHIVE.to_owned(),
        destination,
        treatment: UploadTreatment::Unpack,
        room: None,
    }
}

pub(crate) fn failed(
    path: &Path,
    class: ErrorClass,
    source: impl std::error::Error + Send + Sync + 'static,
) -> RuntimeError {
    RuntimeError::Copy {
        path: path.display().to_string(),
        class,
        source: Box::new(source),
    }
}
