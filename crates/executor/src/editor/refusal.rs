//! Why the editor did not do what it was asked; the texts are the contract's.

use crate::files::Failure;

/// The commands in the order in which the refusal of an unknown one lists them.
const COMMANDS: &str = "view, create, str_replace, insert, undo_edit";

/// How many line numbers a refusal lists; a short text can match a million times.
const LISTED_LINES_MAX: usize = 1000;

/// Why a request of the editor ended without effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("Invalid insert_line value: '{value}'. Expected an integer.")]
    InsertLineNotANumber { value: String },
    #[error(
        "Invalid `path` parameter: {path}. The path should be an absolute path, starting with `/`.{}",
        suggestion.as_ref().map(|there| format!(" Maybe you meant {there}?")).unwrap_or_default()
    )]
    NotAbsolute {
        path: String,
        suggestion: Option<String>,
    },
    #[error("Invalid `path` parameter: {path}. {fault}.")]
    BadPath { path: String, fault: Failure },
    #[error(
        "Invalid `path` parameter: {path}. File already exists at: {path}. Cannot overwrite files using command `create`."
    )]
    Exists { path: String },
    #[error(
        "Invalid `path` parameter: {path}. The path {path} does not exist. Please provide a valid path."
    )]
    Missing { path: String },
    #[error(
        "Invalid `path` parameter: {path}. The path {path} is a directory and only the `view` command can be used on directories."
    )]
    IsDirectory { path: String },
    #[error(
        "Invalid `path` parameter: {path}. The path {path} points to a binary file ({extension}) and only the `view` command can be used on supported binary files."
    )]
    IsDocument { path: String, extension: String },
    #[error(
        "Unrecognized command {command}. The allowed commands for the oh_editor tool are: {COMMANDS}"
    )]
    UnknownCommand { command: String },
    #[error("Parameter `{name}` is required for command: {command}.")]
    ParameterMissing {
        name: &'static str,
        command: &'static str,
    },
    #[error(
        "File validation failed for {path}: File is too large ({:.1}MB). Maximum allowed size is {}MB.",
        *size as f64 / 1024.0 / 1024.0,
        limit >> 20
    )]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error(
        "File validation failed for {path}: File appears to be binary and this file type cannot be read or edited by this tool."
    )]
    Binary { path: String },
    #[error("Ran into {reason} while trying to read {path}")]
    Read { path: String, reason: String },
    #[error("Ran into {reason} while trying to write to {path}")]
    Write { path: String, reason: String },
    #[error("Invalid `view_range` parameter: {range:?}. {why}")]
    ViewRange { range: Vec<i64>, why: String },
    #[error(
        "Error in converting file to Markdown: {reason}. Please use Python code to read {path}"
    )]
    Convert { path: String, reason: String },
    #[error(
        "Invalid `new_str` parameter: {text}. No replacement was performed. `new_str` and `old_str` must be different."
    )]
    SameText { text: String },
    #[error("No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")]
    NotFound { old: String, path: String },
    #[error(
        "No replacement was performed. Multiple occurrences of old_str `{old}` in lines {}. Please ensure it is unique.",
        listed(lines)
    )]
    SeveralFound { old: String, lines: Vec<usize> },
    #[error(
        "Invalid `insert_line` parameter: {line}. It should be within the range of allowed values: [0, {count}]"
    )]
    InsertLineOutside { line: i64, count: usize },
    #[error("No edit history found for {path}.")]
    NoHistory { path: String },
    #[error(
        "No edit history found for {path}. What was stored for it is damaged and has been dropped."
    )]
    DamagedHistory { path: String },
}

impl Refusal {
    pub(super) fn read(path: &str, failure: &Failure) -> Self {
        Self::Read {
            path: path.to_owned(),
            reason: failure.to_string(),
        }
    }

    pub(super) fn write(path: &str, failure: &Failure) -> Self {
        Self::Write {
            path: path.to_owned(),
            reason: failure.to_string(),
        }
    }
}

/// Line numbers as Python prints a list.
fn listed(lines: &[usize]) -> String {
    if lines.len() <= LISTED_LINES_MAX {
        return format!("{lines:?}");
    }
    let shown = format!("{:?}", &lines[..LISTED_LINES_MAX]);
    format!(
        "{}, ... ({} lines)]",
        shown.trim_end_matches(']'),
        lines.len()
    )
}
