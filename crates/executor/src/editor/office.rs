//! Office documents as Markdown text, enough for an agent to read them.
//!
//! Text, headings, lists and tables are kept; pictures, formulas and layout are not. A document
//! comes from anywhere, so every part that is unpacked and every text that is made has a limit.

mod slides;
mod spreadsheet;
mod word;
mod xml;

use std::{
    borrow::Cow,
    ffi::OsStr,
    io::{Cursor, Read},
    path::Path,
};

use zip::ZipArchive;

/// The largest document that is opened.
pub(super) const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
/// The most that is unpacked of one part, since a few bytes can unpack to gigabytes.
const PART_BYTES_MAX: u64 = 32 << 20;
/// More text than is ever shown; the rest is not looked for.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// The kinds of documents that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Spreadsheet,
    Slides,
}

/// Why a document could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConvertError {
    #[error("File is not a zip file")]
    NotAnArchive,
    #[error("there is no part {name} in the archive")]
    PartMissing { name: String },
    #[error("the part {name} is damaged")]
    PartDamaged { name: String },
    #[error("the part {name} is larger than {} MiB", PART_BYTES_MAX >> 20)]
    PartTooLarge { name: String },
}

impl Kind {
    /// The kind of a file, by its extension.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        match extension.to_ascii_lowercase().as_str() {
            "docx" => Some(Self::Word),
            "xlsx" => Some(Self::Spreadsheet),
            "pptx" => Some(Self::Slides),
            _ => None,
        }
    }

    /// The document's text in Markdown.
    pub(super) fn markdown(self, bytes: Vec<u8>) -> Result<String, ConvertError> {
        let mut parts = Parts::open(bytes)?;
        match self {
            Self::Word => word::markdown(&mut parts),
            Self::Spreadsheet => spreadsheet::markdown(&mut parts),
            Self::Slides => slides::markdown(&mut parts),
        }
    }
}

/// The parts of a document by name.
struct Parts(ZipArchive<Cursor<Vec<u8>>>);

impl Parts {
    fn open(bytes: Vec<u8>) -> Result<Self, ConvertError> {
        ZipArchive::new(Cursor::new(bytes))
            .map(Self)
            .map_err(|_| ConvertError::NotAnArchive)
    }

    fn text(&mut self, name: &str) -> Result<String, ConvertError> {
        let part = self
            .0
            .by_name(name)
            .map_err(|_| ConvertError::PartMissing {
                name: name.to_owned(),
            })?;
        let mut text = String::new();
        part.take(PART_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|_| ConvertError::PartDamaged {
                name: name.to_owned(),
            })?;
        if text.len() as u64 > PART_BYTES_MAX {
            return Err(ConvertError::PartTooLarge {
                name: name.to_owned(),
            });
        }
        Ok(text)
    }

    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.file_names().filter_map(Result::ok)
    }
}

/// Rows as a Markdown table whose first row is the head.
fn table(rows: &[Vec<String>]) -> String {
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut lines = Vec::with_capacity(rows.len() + 1);
    for (index, row) in rows.iter().enumerate() {
        let cells = (0..width).map(|column| match row.get(column) {
            Some(cell) => cell.trim().replace('|', "\\|").replace('\n', " "),
            None => String::new(),
        });
        lines.push(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            lines.push(format!("| {} |", vec!["---"; width].join(" | ")));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod office_tests;
