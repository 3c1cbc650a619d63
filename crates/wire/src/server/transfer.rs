//! The handlers that move files: bodies go through as streams and are never held whole.

use std::{io, path::Path, sync::Arc};

use axum::{
    body::Body,
    extract::{Query, Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    answer::{self, Refusal},
    body::{TimedBody, broken, linger},
    handlers::Surface,
    validation,
};
use crate::{
    ArchiveFormat, Download, TransferError, Upload, UploadRoom, UploadTreatment,
    files::FileFailure,
    multipart::{MultipartReader, PartHead, boundary_of},
};

/// Form parts that may stand before the file.
const OTHER_PARTS_MAX: usize = 16;

#[derive(Default, Deserialize)]
struct UploadQuery {
    destination: Option<String>,
    recursive: Option<String>,
    room_bytes: Option<String>,
    room_files: Option<String>,
}

#[derive(Default, Deserialize)]
struct DownloadQuery {
    path: Option<String>,
    format: Option<String>,
}

pub(super) async fn upload_file(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let query: UploadQuery = query_of(request.uri());
    let destination = query.destination.unwrap_or_else(|| "/".to_owned());
    let recursive = query.recursive.as_deref().unwrap_or("false");
    let recursive = validation::boolean("recursive", recursive)?;

    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let room = number(query.room_bytes)
        .zip(number(query.room_files))
        .map(|(bytes, files)| UploadRoom { bytes, files });

    let boundary = boundary_in(request.headers())?;
    let body = TimedBody::new(request.into_body(), surface.limits.body_stall);
    let mut reader = MultipartReader::new(&boundary, body);
    let part = reader
        .part_named("file", OTHER_PARTS_MAX)
        .await
        .map_err(|error| broken(&error))?;
    let Some(PartHead {
        file_name: Some(file_name),
        ..
    }) = part
    else {
        linger(reader.into_source()).await;
        return Err(no_file());
    };
    if let Err(refusal) = check_upload(&destination, recursive, &file_name) {
        linger(reader.into_source()).await;
        return Err(refusal);
    }

    let (data, mut returned) = reader.into_data();
    let upload = Upload {
        file_name: file_name.clone(),
        destination: destination.clone().into(),
        treatment: if recursive {
            UploadTreatment::Unpack
        } else {
            UploadTreatment::Store
        },
        room,
    };
    let stored = surface.service.upload(upload, Box::pin(data)).await;
    // The stream is dropped by now, unless the service kept it for work of its own.
    if let Ok(reader) = returned.try_recv() {
        linger(reader.into_source()).await;
    }
    stored.map_err(|error| transfer_refusal(&error))?;
    Ok(answer::json(&json!({
        "filename": file_name,
        "destination": destination,
        "recursive": recursive,
    })))
}

fn boundary_in(headers: &HeaderMap) -> Result<String, Refusal> {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.and_then(boundary_of).ok_or_else(no_file)
}

fn no_file() -> Refusal {
    validation::missing("body", "file", &Value::Null)
}

fn check_upload(destination: &str, recursive: bool, file_name: &str) -> Result<(), Refusal> {
    if !Path::new(destination).is_absolute() {
        return Err(Refusal::internal(
            "400: Destination must be an absolute path",
        ));
    }
    if recursive && !is_archive(file_name) {
        return Err(Refusal::internal(
            "400: Recursive uploads must be zip files",
        ));
    }
    Ok(())
}

/// The original knows zip only; tar is ours, because it keeps modes and links.
fn is_archive(file_name: &str) -> bool {
    file_name.ends_with(".zip") || file_name.ends_with(".tar")
}

pub(super) async fn download_files(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let query: DownloadQuery = query_of(request.uri());
    let path = query
        .path
        .ok_or_else(|| validation::missing("query", "path", &Value::Null))?;
    let format = match query.format.as_deref() {
        None | Some("zip") => ArchiveFormat::Zip,
        Some("tar") => ArchiveFormat::Tar,
        Some(other) => return Err(validation::no_such_word("format", "'zip' or 'tar'", other)),
    };
    if !Path::new(&path).is_absolute() {
        return Err(Refusal::internal("400: Path must be an absolute path"));
    }
    let download = Download {
        path: path.clone().into(),
        format,
    };
    let archive = surface.service.download(download).await;
    let archive = archive.map_err(|error| transfer_refusal(&error))?;

    let (content_type, extension) = match format {
        ArchiveFormat::Zip => ("application/zip", "zip"),
        ArchiveFormat::Tar => ("application/x-tar", "tar"),
    };
    let mut response = Response::new(Body::from_stream(archive));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::CONTENT_DISPOSITION,
        attachment(Path::new(&path), extension),
    );
    Ok(response)
}

/// Names an archive after what is in it. A name that a quoted string cannot carry is
/// percent-encoded, as the original's framework does it.
fn attachment(path: &Path, extension: &str) -> HeaderValue {
    let name = path
        .file_name()
        .map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let name = format!("{name}.{extension}");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let text = if name.bytes().all(|byte| is_plain(byte) || byte == b' ') {
        format!("attachment; filename=\"{name}\"")
    } else {
        let mut text = "attachment; filename*=utf-8''".to_owned();
        for byte in name.bytes() {
            if is_plain(byte) {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        text
    };
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// The parameters of a query; of one that cannot be read, none.
fn query_of<T: DeserializeOwned + Default>(uri: &Uri) -> T {
    Query::try_from_uri(uri).map_or_else(|_| T::default(), |Query(query)| query)
}

/// The original raises 400 and 404 where it also catches everything, so that the code ends up
/// in the text of a 500. Clients know these texts; ours know a reason by its `code`.
fn transfer_refusal(error: &TransferError) -> Refusal {
    match error {
        TransferError::Invalid { message } => Refusal::internal(format!("400: {message}")),
        TransferError::NotFound => Refusal::internal(format!("404: {error}")),
        TransferError::BadArchive { message } => coded(message, FileFailure::InvalidRequest),
        TransferError::Io { message, source } => {
            tracing::info!(error = %source, "a transfer failed");
            coded(message, reason_of(source))
        }
    }
}

fn coded(message: &str, reason: FileFailure) -> Refusal {
    Refusal {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        document: json!({ "detail": message, "code": reason.code() }),
        retry_after: None,
    }
}

fn reason_of(error: &io::Error) -> FileFailure {
    match error.kind() {
        io::ErrorKind::NotFound => FileFailure::NotFound,
        io::ErrorKind::PermissionDenied => FileFailure::Denied,
        io::ErrorKind::IsADirectory => FileFailure::IsDirectory,
        io::ErrorKind::NotADirectory => FileFailure::NotDirectory,
        io::ErrorKind::AlreadyExists => FileFailure::Exists,
        io::ErrorKind::DirectoryNotEmpty => FileFailure::NotEmpty,
        io::ErrorKind::ReadOnlyFilesystem => FileFailure::ReadOnly,
        io::ErrorKind::StorageFull => FileFailure::NoSpace,
        io::ErrorKind::QuotaExceeded => FileFailure::Quota,
        io::ErrorKind::InvalidFilename => FileFailure::NameTooLong,
        // The only thing that a path can hold and no system call takes is a NUL byte.
        io::ErrorKind::InvalidInput => FileFailure::InvalidPath,
        _ => FileFailure::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_named_after_what_is_in_them() {
        for (path, expected) in [
            ("/workspace/zz", "attachment; filename=\"zz.zip\""),
            ("/workspace/zz/", "attachment; filename=\"zz.zip\""),
            ("/a b/c d", "attachment; filename=\"c d.zip\""),
            ("/", "attachment; filename=\"root.zip\""),
            ("/nö\"t", "attachment; filename*=utf-8''n%C3%B6%22t.zip"),
            (
                "/a\r\nx: y",
                "attachment; filename*=utf-8''a%0D%0Ax%3A%20y.zip",
            ),
        ] {
            assert_eq!(attachment(Path::new(path), "zip"), expected, "{path:?}");
        }
    }
}
