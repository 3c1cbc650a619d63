//! Reading a file that is to be shown: small enough, regular, and what its name says.

use std::{
    ffi::OsStr,
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use http::StatusCode;
use rustix::fs::OFlags;

/// A page holds the file as text, a third larger, while it is sent.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pdf,
    Png,
    Jpeg,
    Gif,
}

/// A file that can be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

/// Why a file is not shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ViewError {
    #[error("Path must be absolute")]
    NotAbsolute,
    #[error("File not found")]
    NotFound,
    #[error("Path is a directory")]
    Directory,
    #[error("Unsupported file extension: {extension}")]
    Extension { extension: String },
    #[error("The content is not what the file extension says")]
    Mislabelled,
    #[error("Not a regular file")]
    Special,
    #[error("The file is larger than the limit of {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("{source}")]
    Read { source: io::Error },
}

impl ViewError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotAbsolute | Self::Directory => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The page's heading; clients look for these words.
    pub(super) fn heading(&self) -> String {
        match self {
            Self::NotAbsolute | Self::NotFound | Self::Directory => format!("Error: {self}"),
            _ => "Error viewing file".to_owned(),
        }
    }

    pub(super) fn detail(&self) -> String {
        match self {
            Self::NotAbsolute | Self::NotFound | Self::Directory => String::new(),
            _ => self.to_string(),
        }
    }
}

impl Kind {
    fn of_extension(path: &Path) -> Result<Self, ViewError> {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "pdf" => Ok(Self::Pdf),
            "png" => Ok(Self::Png),
            "jpg" | "jpeg" => Ok(Self::Jpeg),
            "gif" => Ok(Self::Gif),
            _ => Err(ViewError::Extension {
                extension: format!(".{extension}"),
            }),
        }
    }

    fn signature(self) -> &'static [u8] {
        match self {
            Self::Pdf => b"%PDF-",
            Self::Png => b"\x89PNG\r\n\x1a\n",
            Self::Jpeg => b"\xff\xd8\xff",
            Self::Gif => b"GIF8",
        }
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
        }
    }
}

/// Opens first and judges what was opened; a pipe or device is neither waited for nor read.
pub(super) fn read(path: &Path) -> Result<Content, ViewError> {
    if !path.is_absolute() {
        return Err(ViewError::NotAbsolute);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags as i32)
        .open(path);
    let file = file.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ViewError::NotFound,
        _ => ViewError::Read { source },
    })?;
    let metadata = file
        .metadata()
        .map_err(|source| ViewError::Read { source })?;
    if metadata.is_dir() {
        return Err(ViewError::Directory);
    }
    let kind = Kind::of_extension(path)?;
    if !metadata.is_file() {
        return Err(ViewError::Special);
    }
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| ViewError::Read { source })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ViewError::TooLarge);
    }
    if !bytes.starts_with(kind.signature()) {
        return Err(ViewError::Mislabelled);
    }
    Ok(Content { kind, bytes })
}
