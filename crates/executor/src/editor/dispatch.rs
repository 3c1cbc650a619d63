//! Checks a request, picks the command and wraps what comes of it into an observation.

use std::{path::PathBuf, sync::Arc};

use rustix::fs::FileType;
use serde_json::Value;
use zareba_protocol::{
    EditFile, EditSource, Edited, Observation, ObservationKind, ReadFile, ReadSource,
};

use super::{diff, history::History, office, refusal::Refusal, view::document_extension};
use crate::{
    files::{BINARY_FILE, FilePath, Opened, SAMPLE_BYTES, Workspace, is_binary, tidy},
    lint::{Linter, Linting},
};

const NO_DRAFTS: &str = "Draft edits (impl_source `llm_based_edit`) need a language model and are not available in this executor. Use the editor instead (impl_source `oh_aci`) with one of the commands view, create, str_replace, insert, undo_edit.";

/// What an [`Editor`] is made from, beside its workspace.
#[derive(Clone, Debug)]
pub(crate) struct EditorSettings {
    /// Where the undo history is kept; made when it is first needed.
    pub(crate) history_dir: PathBuf,
    /// Whether edits are checked for mistakes that a parser can find.
    pub(crate) linting: Linting,
}

/// Performs `edit` actions and the editor's kind of `read`.
#[derive(Debug)]
pub(crate) struct Editor {
    pub(super) workspace: Arc<Workspace>,
    pub(super) history: History,
    pub(super) linter: Linter,
}

/// What a command of the editor says, and for an edit the texts before and after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) message: String,
    pub(super) change: Option<(String, String)>,
}

/// What is at a path that passed the checks.
enum Found {
    Nothing,
    Directory,
    Other,
}

impl Editor {
    /// Edits the files of one workspace.
    pub(crate) fn new(workspace: Arc<Workspace>, settings: EditorSettings) -> Self {
        let linter = Linter::new(settings.linting, workspace.owner());
        Self {
            workspace,
            history: History::new(settings.history_dir),
            linter,
        }
    }

    /// Performs one command. Edits of one file wait for each other.
    pub(crate) fn edit(&self, action: &EditFile) -> Observation {
        match action.impl_source {
            EditSource::Draft => return Observation::error(NO_DRAFTS),
            EditSource::Editor => {}
        }
        let (content, diff) = match self.command(action) {
            Ok(Outcome {
                message,
                change: None,
            }) => (message, String::new()),
            Ok(Outcome {
                message,
                change: Some((old, new)),
            }) => (message, diff::unified(&action.path, &old, &new)),
            Err(refusal) => (format!("ERROR:\n{refusal}"), String::new()),
        };
        let extras = Edited {
            path: action.path.clone(),
            prev_exist: false,
            old_content: action.old_str.clone(),
            new_content: action.new_str.clone(),
            impl_source: EditSource::Editor,
            diff: Some(diff),
            diff_cache: None,
        };
        Observation {
            content,
            kind: ObservationKind::Edit(extras),
        }
    }

    /// The `read` that asks for the editor's numbered view.
    pub(crate) fn view_for_read(&self, action: &ReadFile) -> Observation {
        if self.is_binary(&action.path) {
            return Observation::error(BINARY_FILE);
        }
        let range = action.view_range.as_deref().unwrap_or_default();
        let view = self
            .checked(&action.path, "view")
            .and_then(|path| self.view(&path, range));
        let content = view.unwrap_or_else(|refusal| format!("ERROR:\n{refusal}"));
        let path = action.path.clone();
        Observation {
            content,
            kind: ObservationKind::Read {
                path,
                impl_source: ReadSource::Editor,
            },
        }
    }

    fn command(&self, action: &EditFile) -> Result<Outcome, Refusal> {
        let insert_line = insert_line(action.insert_line.as_ref())?;
        let path = self.checked(&action.path, &action.command)?;
        let missing = |name, command| Refusal::ParameterMissing { name, command };
        match action.command.as_str() {
            "view" => Ok(Outcome {
                message: self.view(&path, &[])?,
                change: None,
            }),
            "create" => {
                let text = action
                    .file_text
                    .as_deref()
                    .ok_or(missing("file_text", "create"))?;
                self.create(&path, text)
            }
            "str_replace" => {
                let old = action
                    .old_str
                    .as_deref()
                    .ok_or(missing("old_str", "str_replace"))?;
                if action.new_str.as_deref() == Some(old) {
                    return Err(Refusal::SameText {
                        text: old.to_owned(),
                    });
                }
                self.str_replace(&path, old, action.new_str.as_deref().unwrap_or_default())
            }
            "insert" => {
                let line = insert_line.ok_or(missing("insert_line", "insert"))?;
                let new = action
                    .new_str
                    .as_deref()
                    .ok_or(missing("new_str", "insert"))?;
                self.insert(&path, line, new)
            }
            "undo_edit" => self.undo(&path),
            other => Err(Refusal::UnknownCommand {
                command: other.to_owned(),
            }),
        }
    }

    /// The checks that need the path and the command, in the contract's order.
    fn checked(&self, path: &str, command: &str) -> Result<FilePath, Refusal> {
        let shown = tidy(path);
        if !shown.starts_with('/') {
            let suggestion = FilePath::locate(&shown, self.workspace.working_dir())
                .ok()
                .filter(|there| matches!(self.workspace.stat(there), Ok(Some(_))))
                .map(|there| there.shown().to_owned());
            return Err(Refusal::NotAbsolute {
                path: shown,
                suggestion,
            });
        }
        let located = FilePath::locate(path, self.workspace.working_dir()).map_err(|fault| {
            Refusal::BadPath {
                path: shown.clone(),
                fault,
            }
        })?;
        match (self.found(&located)?, command) {
            (Found::Nothing, "create") => {}
            (_, "create") => return Err(Refusal::Exists { path: shown }),
            (Found::Nothing, _) => return Err(Refusal::Missing { path: shown }),
            (_, "view") => return Ok(located),
            (Found::Directory, _) => return Err(Refusal::IsDirectory { path: shown }),
            (Found::Other, _) => {}
        }
        match document_extension(located.as_path()) {
            Some(extension) => Err(Refusal::IsDocument {
                path: shown,
                extension,
            }),
            None => Ok(located),
        }
    }

    fn found(&self, path: &FilePath) -> Result<Found, Refusal> {
        let stat = self
            .workspace
            .stat(path)
            .map_err(|failure| Refusal::read(path.shown(), &failure))?;
        Ok(match stat {
            None => Found::Nothing,
            Some(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => Found::Directory,
                _ => Found::Other,
            },
        })
    }

    /// Whether a `read` should not be tried; what cannot be told is left to the view.
    fn is_binary(&self, path: &str) -> bool {
        if !path.starts_with('/') {
            return false;
        }
        let Ok(path) = FilePath::locate(path, self.workspace.working_dir()) else {
            return false;
        };
        match self.workspace.open(&path) {
            // What can be shown as text is left to the view, whatever its bytes look like.
            Ok(Opened::File(_)) if office::Kind::of(path.as_path()).is_some() => false,
            Ok(Opened::File(file)) => file
                .start(SAMPLE_BYTES + 1)
                .is_ok_and(|sample| is_binary(path.as_path(), &sample)),
            _ => false,
        }
    }
}

/// The number that `insert_line` means: an integer, or text that Python's `int` would take.
fn insert_line(value: Option<&Value>) -> Result<Option<i64>, Refusal> {
    let wrong = |value: String| Refusal::InsertLineNotANumber { value };
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let digits = text.trim().replace('_', "");
            digits.parse().map(Some).map_err(|_| wrong(text.clone()))
        }
        Some(other) => other
            .as_i64()
            .map(Some)
            .ok_or_else(|| wrong(other.to_string())),
    }
}
