//! The commands that write: `create`, `str_replace`, `insert` and `undo_edit`.

use std::sync::MutexGuard;

use rustix::fs::Stat;

use super::{
    dispatch::{Editor, Outcome},
    document::Document,
    history::Recalled,
    insert,
    listing::{lines_between, numbered},
    refusal::Refusal,
    str_replace,
    view::{contents, decoded},
};
use crate::files::{Failure, FilePath, Opened, Ownership, Slot, Target};

/// Lines that a snippet shows before and after an edit.
const CONTEXT_LINES: usize = 4;

const REVIEW: &str =
    "Review the changes and make sure they are as expected. Edit the file again if necessary.";
const REVIEW_INSERTED: &str = "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.";

impl Editor {
    pub(super) fn create(&self, path: &FilePath, text: &str) -> Result<Outcome, Refusal> {
        let shown = path.shown();
        let refused = |failure: Failure| match failure {
            Failure::Changed { .. } => Refusal::Exists {
                path: shown.to_owned(),
            },
            other => Refusal::write(shown, &other),
        };
        let slot = self.workspace.slot(path).map_err(refused)?;
        let _only_writer = self.workspace.lock(&slot).map_err(refused)?;
        let target = Target::Absent(self.workspace.owner());
        if let Ownership::Refused(failure) =
            slot.replace(text.as_bytes(), target).map_err(refused)?
        {
            tracing::warn!(%failure, "a created file belongs to the executor's user");
        }
        self.history.push(shown, text.as_bytes());
        Ok(Outcome {
            message: format!("File created successfully at: {shown}"),
            change: Some((String::new(), text.to_owned())),
        })
    }

    pub(super) fn str_replace(
        &self,
        path: &FilePath,
        old: &str,
        new: &str,
    ) -> Result<Outcome, Refusal> {
        let shown = path.shown();
        let mut line = 1;
        let mut inserted_newlines = 0;
        let (before, after) = self.change(path, |document| {
            let (old, new) = (fitted(document, old), fitted(document, new));
            let replacement = str_replace::plan(shown, &document.text, &old, &new)?;
            line = replacement.line;
            inserted_newlines = replacement.with.matches('\n').count();
            Ok(document.spliced(replacement.range, &replacement.with))
        })?;
        let first = line.saturating_sub(CONTEXT_LINES) + 1;
        let snippet = lines_between(&after, first, line + CONTEXT_LINES + inserted_newlines);
        let listing = numbered(&snippet, &format!("a snippet of {shown}"), first);
        Ok(self.edited(path, before, after, &listing, REVIEW))
    }

    pub(super) fn insert(&self, path: &FilePath, line: i64, new: &str) -> Result<Outcome, Refusal> {
        let mut lines = 0..0;
        let (before, after) = self.change(path, |document| {
            let insertion = insert::plan(&document.text, line, &fitted(document, new))?;
            let first = insertion.after.saturating_sub(CONTEXT_LINES) + 1;
            let last = insertion.after + CONTEXT_LINES + insertion.lines;
            lines = first..last.min(insertion.count + insertion.lines);
            Ok(document.spliced(insertion.at..insertion.at, &insertion.with))
        })?;
        let snippet = lines_between(&after, lines.start, lines.end);
        let listing = numbered(&snippet, "a snippet of the edited file", lines.start);
        Ok(self.edited(path, before, after, &listing, REVIEW_INSERTED))
    }

    pub(super) fn undo(&self, path: &FilePath) -> Result<Outcome, Refusal> {
        let shown = path.shown();
        let slot = self.slot(path)?;
        let (_only_writer, bytes, stat) = self.hold(path, &slot)?;
        let before = decoded(shown, &bytes)?.text;
        let damaged = || Refusal::DamagedHistory {
            path: shown.to_owned(),
        };
        let entry = match self.history.last(shown) {
            Recalled::Nothing => {
                return Err(Refusal::NoHistory {
                    path: shown.to_owned(),
                });
            }
            Recalled::Damaged => return Err(damaged()),
            Recalled::Entry(entry) => entry,
        };
        let after = Document::decode(&entry.content)
            .map_err(|_| damaged())?
            .text;
        write(&slot, &entry.content, &stat)?;
        self.history.forget(&entry.id);
        let listing = numbered(&after, shown, 1);
        Ok(Outcome {
            message: format!("Last edit to {shown} undone successfully. {listing}"),
            change: Some((before, after)),
        })
    }

    /// Reads a file, lets `plan` compute its new content, writes it and remembers the old one.
    /// Returns the texts before and after.
    fn change(
        &self,
        path: &FilePath,
        plan: impl FnOnce(&Document) -> Result<Document, Refusal>,
    ) -> Result<(String, String), Refusal> {
        let shown = path.shown();
        let slot = self.slot(path)?;
        let (_only_writer, bytes, stat) = self.hold(path, &slot)?;
        let before = decoded(shown, &bytes)?;
        let after = plan(&before)?;
        let encoded = after.encode().map_err(|reason| Refusal::Write {
            path: shown.to_owned(),
            reason,
        })?;
        write(&slot, &encoded, &stat)?;
        self.history.push(shown, &bytes);
        Ok((before.text, after.text))
    }

    fn slot(&self, path: &FilePath) -> Result<Slot, Refusal> {
        self.workspace
            .slot(path)
            .map_err(|failure| Refusal::read(path.shown(), &failure))
    }

    /// Reads a file that nobody else writes as long as the guard lives.
    fn hold(
        &self,
        path: &FilePath,
        slot: &Slot,
    ) -> Result<(MutexGuard<'_, ()>, Vec<u8>, Stat), Refusal> {
        let shown = path.shown();
        let only_writer = self
            .workspace
            .lock(slot)
            .map_err(|failure| Refusal::write(shown, &failure))?;
        let opened = slot
            .open()
            .map_err(|failure| Refusal::read(shown, &failure))?;
        match opened {
            Some(Opened::File(file)) => {
                let stat = file.stat;
                Ok((only_writer, contents(path, file)?, stat))
            }
            // Only somebody who changed it since the checks can lead here.
            Some(Opened::Directory(_)) => Err(Refusal::IsDirectory {
                path: shown.to_owned(),
            }),
            None => Err(Refusal::Missing {
                path: shown.to_owned(),
            }),
        }
    }

    fn edited(
        &self,
        path: &FilePath,
        before: String,
        after: String,
        listing: &str,
        review: &str,
    ) -> Outcome {
        let lint = self
            .linter
            .report(path.as_path(), &before, &after)
            .unwrap_or_default();
        let message = format!(
            "The file {} has been edited. {listing}{lint}{review}",
            path.shown()
        );
        Outcome {
            message,
            change: Some((before, after)),
        }
    }
}

fn write(slot: &Slot, content: &[u8], stat: &Stat) -> Result<(), Refusal> {
    match slot.replace(content, Target::Present(stat)) {
        Ok(_) => Ok(()),
        Err(failure) => Err(Refusal::write(slot.shown(), &failure)),
    }
}

/// An agent's text as it must look beside a file's text, whose newlines are all `\n`.
fn fitted(document: &Document, text: &str) -> String {
    if document.has_windows_newlines() {
        text.replace("\r\n", "\n")
    } else {
        text.to_owned()
    }
}
