//! The `read` action: a file's text, or its bytes as a data URL.

use std::{ffi::OsStr, path::Path, sync::Arc};

use base64::Engine;
use rustix::io::Errno;
use zareba_protocol::{Observation, ObservationKind, ReadFile, ReadSource};

use super::{Failure, FilePath, OpenFile, Opened, Workspace, is_binary, lines, universal_newlines};

/// The largest file that is returned as text; an observation is held in memory several times.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The largest file that is returned as a data URL.
const DATA_URL_BYTES_MAX: u64 = 64 << 20;

/// The wire's word for a file that is neither text nor of a kind that is returned whole.
pub(crate) const BINARY_FILE: &str = "ERROR_BINARY_FILE";

/// Reads, writes and lists files for actions.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(super) workspace: Arc<Workspace>,
}

impl Files {
    /// Works on the files of one workspace.
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }

    /// The plain `read`; the editor's view is `Editor::view_for_read`.
    ///
    /// `cwd` is the shell's directory, which a relative path is meant from.
    pub(crate) fn read(&self, action: &ReadFile, cwd: &Path) -> Observation {
        match self.try_read(action, cwd) {
            Ok((content, path)) => Observation {
                content,
                kind: ObservationKind::Read {
                    path,
                    impl_source: ReadSource::Plain,
                },
            },
            Err(message) => Observation::error(message),
        }
    }

    fn try_read(&self, action: &ReadFile, cwd: &Path) -> Result<(String, String), String> {
        let path = FilePath::locate(&action.path, cwd).map_err(|failure| failure.to_string())?;
        let shown = path.shown();
        let refused = |failure: Failure| match failure.errno() {
            Some(Errno::NOENT) => format!(
                "File not found: {shown}. Your current working directory is {}.",
                cwd.display()
            ),
            _ => failure.to_string(),
        };
        let file = match self.workspace.open(&path).map_err(refused)? {
            Opened::File(file) => file,
            Opened::Directory(_) => {
                return Err(format!(
                    "Path is a directory: {shown}. You can only read files"
                ));
            }
        };
        let content = match media_type(path.as_path()) {
            Some(media_type) => data_url(file, media_type).map_err(refused)?,
            None => text(file, &path, action)?,
        };
        Ok((content, shown.to_owned()))
    }
}

fn text(file: OpenFile, path: &FilePath, action: &ReadFile) -> Result<String, String> {
    let bytes = file
        .read(TEXT_BYTES_MAX)
        .map_err(|failure| failure.to_string())?;
    if is_binary(path.as_path(), &bytes) {
        return Err(BINARY_FILE.to_owned());
    }
    let Ok(mut text) = String::from_utf8(bytes) else {
        return Err(format!(
            "File could not be decoded as utf-8: {}.",
            path.shown()
        ));
    };
    if let std::borrow::Cow::Owned(converted) = universal_newlines(&text) {
        text = converted;
    }
    if action.start <= 0 && action.end == -1 {
        return Ok(text);
    }
    let all = lines::lines(&text);
    Ok(all[lines::read_range(action.start, action.end, all.len())].concat())
}

/// The media type of the kinds that are returned as data URLs, by extension.
fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path
        .extension()
        .and_then(OsStr::to_str)?
        .to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "bmp" => "image/bmp",
        "gif" => "image/gif",
        "pdf" => "application/pdf",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "ogg" => "audio/ogg",
        _ => return None,
    })
}

fn data_url(file: OpenFile, media_type: &str) -> Result<String, Failure> {
    let bytes = file.read(DATA_URL_BYTES_MAX)?;
    let mut url = format!("data:{media_type};base64,");
    base64::engine::general_purpose::STANDARD.encode_string(bytes, &mut url);
    Ok(url)
}
