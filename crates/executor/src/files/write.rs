//! The `write` action: a file's new content, or a splice of lines into it.

use std::path::Path;

use rustix::io::Errno;
use zareba_protocol::{Observation, ObservationKind, WriteFile};

use super::{Failure, FilePath, Files, Opened, Ownership, Target, lines::write_range};

/// The largest file that lines are spliced into, since it is held in memory.
const SPLICED_BYTES_MAX: u64 = 64 << 20;

impl Files {
    /// Writes a file, making its directories, and keeps mode and owner of one that is there.
    ///
    /// `cwd` is the shell's directory, which a relative path is meant from.
    pub(crate) fn write(&self, action: &WriteFile, cwd: &Path) -> Observation {
        match self.try_write(action, cwd) {
            Ok(path) => Observation {
                content: String::new(),
                kind: ObservationKind::Write { path },
            },
            Err(message) => Observation::error(message),
        }
    }

    fn try_write(&self, action: &WriteFile, cwd: &Path) -> Result<String, String> {
        let path = FilePath::locate(&action.path, cwd).map_err(|failure| failure.to_string())?;
        let shown = path.shown();
        let refused = |failure: Failure| match failure.errno() {
            Some(Errno::NOENT) => format!("File not found: {shown}"),
            Some(Errno::ISDIR) => directory(shown),
            _ => failure.to_string(),
        };
        let slot = self.workspace.slot_with_parents(&path).map_err(refused)?;
        let _only_writer = self.workspace.lock(&slot).map_err(refused)?;
        let ownership = match slot.open().map_err(refused)? {
            Some(Opened::Directory(_)) => return Err(directory(shown)),
            None => slot.replace(
                new_lines(&action.content, "\n").as_bytes(),
                Target::Absent(self.workspace.owner()),
            ),
            Some(Opened::File(file)) => {
                let stat = file.stat;
                let bytes = file.read(SPLICED_BYTES_MAX).map_err(refused)?;
                let Ok(text) = String::from_utf8(bytes) else {
                    return Err(format!("File could not be decoded as utf-8: {shown}"));
                };
                slot.replace(spliced(&text, action).as_bytes(), Target::Present(&stat))
            }
        };
        match ownership.map_err(refused)? {
            Ownership::AsWanted => Ok(shown.to_owned()),
            Ownership::Refused(failure) => Err(format!(
                "File {shown} written, but failed to change ownership and permissions: {failure}"
            )),
        }
    }
}

fn directory(shown: &str) -> String {
    format!("Path is a directory: {shown}. You can only write to files")
}

/// The pieces between newlines, each followed by one: a file always ends with a newline.
fn new_lines(content: &str, newline: &str) -> String {
    let mut out = String::with_capacity(content.len() + 1);
    for piece in content.split('\n') {
        out.push_str(piece);
        out.push_str(newline);
    }
    out
}

/// The kept lines byte for byte, with the new ones between them.
///
/// When lines are kept, the new ones end as most of the file's do; who replaces the whole file
/// says how its lines end.
fn spliced(old: &str, action: &WriteFile) -> String {
    let lines = split_keeping_ends(old);
    let (keep, resume) = write_range(action.start, action.end, lines.len());
    if keep == 0 && resume == lines.len() {
        return new_lines(&action.content, "\n");
    }
    let newline = usual_newline(&lines);
    let mut out = lines[..keep].concat();
    if !out.is_empty() && !out.ends_with(['\n', '\r']) {
        out.push_str(newline);
    }
    out.push_str(&new_lines(&action.content, newline));
    out.push_str(&lines[resume..].concat());
    out
}

fn usual_newline(lines: &[&str]) -> &'static str {
    let windows = lines.iter().filter(|line| line.ends_with("\r\n")).count();
    if windows * 2 > lines.len() {
        "\r\n"
    } else {
        "\n"
    }
}

/// Lines with the newline that ends each: `\n`, `\r\n` or a lone `\r`.
fn split_keeping_ends(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
        let length = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        let (line, after) = rest.split_at(at + length);
        lines.push(line);
        rest = after;
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}
