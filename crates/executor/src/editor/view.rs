//! The `view` command: a file with line numbers, a part of one, or a directory.

use std::{ffi::OsStr, path::Path};

use super::{
    directory,
    dispatch::Editor,
    document::Document,
    listing::{DOCUMENT_CLIPPED, clip, lines_between, numbered},
    office,
    refusal::Refusal,
};
use crate::files::{FilePath, OpenFile, Opened, is_binary};

/// The largest file that is shown or edited.
const FILE_BYTES_MAX: u64 = 10 << 20;

/// Extensions of documents that are viewed as text and never edited.
const DOCUMENTS: [&str; 8] = ["docx", "xlsx", "pptx", "pdf", "mp3", "wav", "m4a", "flac"];

impl Editor {
    pub(super) fn view(&self, path: &FilePath, range: &[i64]) -> Result<String, Refusal> {
        let shown = path.shown();
        let file = match self.open(path)? {
            Opened::Directory(_) if !range.is_empty() => {
                let why =
                    "The `view_range` parameter is not allowed when `path` points to a directory.";
                return Err(Refusal::ViewRange {
                    range: range.to_owned(),
                    why: why.to_owned(),
                });
            }
            Opened::Directory(handle) => {
                return Ok(directory::listing(&self.workspace, path, handle));
            }
            Opened::File(file) => file,
        };
        if let Some(extension) = document_extension(path.as_path()) {
            return converted(path, file, &extension);
        }
        let text = decoded(shown, &contents(path, file)?)?.text;
        if range.is_empty() {
            return Ok(numbered(&text, shown, 1));
        }
        part(shown, &text, range)
    }

    pub(super) fn open(&self, path: &FilePath) -> Result<Opened, Refusal> {
        self.workspace
            .open(path)
            .map_err(|failure| Refusal::read(path.shown(), &failure))
    }
}

/// A document as text, under the sentence that says so.
fn converted(path: &FilePath, file: OpenFile, extension: &str) -> Result<String, Refusal> {
    let shown = path.shown();
    let refused = |reason: String| Refusal::Convert {
        path: shown.to_owned(),
        reason,
    };
    let kind = office::Kind::of(path.as_path())
        .ok_or_else(|| refused(format!("there is no converter for {extension} files here")))?;
    let bytes = file
        .read(office::DOCUMENT_BYTES_MAX)
        .map_err(|failure| Refusal::read(shown, &failure))?;
    let text = kind
        .markdown(bytes)
        .map_err(|error| refused(error.to_string()))?;
    Ok(format!(
        "Here's the content of the file {shown} displayed in Markdown format:\n{}\n",
        clip(&text, DOCUMENT_CLIPPED)
    ))
}

/// All bytes of a file that may be shown or edited.
pub(super) fn contents(path: &FilePath, file: OpenFile) -> Result<Vec<u8>, Refusal> {
    let shown = path.shown();
    let size = file.size();
    if size > FILE_BYTES_MAX {
        return Err(Refusal::TooLarge {
            path: shown.to_owned(),
            size,
            limit: FILE_BYTES_MAX,
        });
    }
    let bytes = file
        .read(FILE_BYTES_MAX)
        .map_err(|failure| Refusal::read(shown, &failure))?;
    if is_binary(path.as_path(), &bytes) {
        return Err(Refusal::Binary {
            path: shown.to_owned(),
        });
    }
    Ok(bytes)
}

pub(super) fn decoded(shown: &str, bytes: &[u8]) -> Result<Document, Refusal> {
    Document::decode(bytes).map_err(|reason| Refusal::Read {
        path: shown.to_owned(),
        reason,
    })
}

/// The extension, with its dot, of a document that only `view` works on.
pub(super) fn document_extension(path: &Path) -> Option<String> {
    let extension = path.extension().and_then(OsStr::to_str)?;
    DOCUMENTS
        .contains(&extension.to_ascii_lowercase().as_str())
        .then(|| format!(".{extension}"))
}

fn part(shown: &str, text: &str, range: &[i64]) -> Result<String, Refusal> {
    let invalid = |why: String| Refusal::ViewRange {
        range: range.to_owned(),
        why,
    };
    let &[first, last] = range else {
        return Err(invalid("It should be a list of two integers.".to_owned()));
    };
    let count = text.split_inclusive('\n').count();
    let inside = |line: i64| usize::try_from(line).ok().filter(|line| *line <= count);
    let Some(start) = inside(first).filter(|line| *line >= 1) else {
        return Err(invalid(format!(
            "Its first element `{first}` should be within the range of lines of the file: [1, {count}]."
        )));
    };
    let (end, note) = match inside(last) {
        Some(end) => (end, String::new()),
        None if last == -1 => (count, String::new()),
        None if last < 0 => (0, String::new()),
        None => (
            count,
            format!(
                "NOTE: We only show up to {count} since there're only {count} lines in this file.\n"
            ),
        ),
    };
    if end < start {
        return Err(invalid(format!(
            "Its second element `{last}` should be greater than or equal to the first element `{first}`."
        )));
    }
    let lines = lines_between(text, start, end);
    let lines = lines.strip_suffix('\n').unwrap_or(&lines);
    Ok(format!("{note}{}", numbered(lines, shown, start)))
}
