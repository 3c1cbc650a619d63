//! Copying in and out: an archive is packed at one end and unpacked at the other while it is
//! being made.
//!
//! This machine's end is the executor's own, so that what comes from another server meets the same
//! checks here as what goes into a sandbox does there.

use std::path::{Path, PathBuf};

use zareba_executor::{Owner, Transfers};
use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;
use zareba_wire::{ArchiveFormat, Download, Upload, UploadTreatment};

use crate::link::{Link, class_of};

/// Copies a file or directory of this machine into a directory inside.
pub(crate) async fn copy_in(link: &dyn Link, from: &Path, to: PathBuf) -> Result<(), RuntimeError> {
    let given = from.to_owned();
    let (from, to) = tokio::task::spawn_blocking(move || source(&given, to))
        .await
        .map_err(|error| failed(from, ErrorClass::Internal, error))??;
    let format = link.archives();
    let download = Download {
        path: from.clone(),
        format,
    };
    let packed = here().download(download).await;
    let packed = packed.map_err(|error| failed(&from, class_of(&error), error))?;
    let sent = link.upload(unpacked(to, format), packed).await;
    sent.map_err(|error| failed(&from, error.class(), error))
}

/// Copies what a directory inside holds, or one file, into a directory of this machine.
pub(crate) async fn copy_out(
    link: &dyn Link,
    from: PathBuf,
    to: &Path,
) -> Result<(), RuntimeError> {
    let to = std::path::absolute(to).map_err(|error| failed(to, ErrorClass::Invalid, error))?;
    let format = link.archives();
    let download = Download {
        path: from.clone(),
        format,
    };
    let packed = link.download(download).await;
    let packed = packed.map_err(|error| failed(&from, error.class(), error))?;
    let stored = here().upload(unpacked(to, format), packed).await;
    stored.map_err(|error| failed(&from, class_of(&error), error))
}

/// This machine's end: new files are ours.
fn here() -> Transfers {
    Transfers::new(Owner::Ourselves)
}

/// What is copied, by its real name, and where to: a directory keeps its name.
fn source(from: &Path, to: PathBuf) -> Result<(PathBuf, PathBuf), RuntimeError> {
    let real = std::fs::canonicalize(from).map_err(|error| {
        let class = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorClass::NotFound,
            std::io::ErrorKind::PermissionDenied => ErrorClass::Permission,
            _ => ErrorClass::Invalid,
        };
        failed(from, class, error)
    })?;
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

fn unpacked(destination: PathBuf, format: ArchiveFormat) -> Upload {
    let file_name = match format {
        ArchiveFormat::Zip => "copy.zip",
        ArchiveFormat::Tar => "copy.tar",
    };
    Upload {
        file_name: file_name.to_owned(),
        destination,
        treatment: UploadTreatment::Unpack,
        room: None,
    }
}

fn failed(
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
