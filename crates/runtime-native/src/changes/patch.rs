//! Changes in the format of `git diff`, which `git apply` and `patch -p1` take.
//!
//! A name that could be misread is quoted as git quotes it, so that no name chosen by a sandbox
//! breaks out of its line.

use std::{
    ffi::OsStr,
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use zareba_runtime::{LEFT_OUT, PATCH_BYTES_MAX};

use super::{
    Layers,
    tree::Node,
    walk::{Change, Found},
};

/// The longest file that is compared line by line.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes in which a file that is not text has a zero, as git has it.
const BINARY_PROBE: usize = 8000;

/// Lines around a change.
const CONTEXT: usize = 3;

/// How long the lines of one file are compared exactly. Beyond, the patch is longer than it need
/// be, and correct.
const EXACT: Duration = Duration::from_secs(2);

const PLAIN: &str = "100644";
const EXECUTABLE: &str = "100755";
const LINK: &str = "120000";

/// Writes a patch of what was found.
pub(super) fn write(layers: &Layers, found: &Found) -> Vec<u8> {
    let mut left_out = Vec::new();
    let mut files = Vec::new();
    // What is deleted first: it may be in the way of what has come in its place.
    let (gone, there): (Vec<_>, Vec<_>) = found
        .changes
        .iter()
        .partition(|change| change.after.is_none());
    for change in gone.into_iter().chain(there) {
        match section(layers, change) {
            Ok(section) if files.len() + section.len() > PATCH_BYTES_MAX => {
                let reason = format!("the patch would exceed {PATCH_BYTES_MAX} bytes");
                leave_out(&mut left_out, &change.path, &reason);
            }
            Ok(section) => files.extend_from_slice(&section),
            Err(reason) => leave_out(&mut left_out, &change.path, &reason),
        }
    }
    for (path, reason) in &found.unread {
        leave_out(&mut left_out, path, reason);
    }
    left_out.append(&mut files);
    left_out
}

fn leave_out(lines: &mut Vec<u8>, path: &Path, reason: &str) {
    lines.extend_from_slice(LEFT_OUT.as_bytes());
    lines.extend_from_slice(&quoted("", path));
    // The texts of errors have one line.
    lines.extend_from_slice(format!(": {}\n", reason.replace('\n', " ")).as_bytes());
}

/// One side of a change, as git has it.
struct Side {
    mode: &'static str,
    content: Vec<u8>,
}

/// The part of a patch for one change, or why it has none.
fn section(layers: &Layers, change: &Change) -> Result<Vec<u8>, String> {
    let old_path = change.from.as_deref().unwrap_or(&change.path);
    let mut section = Vec::new();
    if let Some(from) = &change.from {
        header(&mut section, from, &change.path);
        section.extend_from_slice(b"similarity index 100%\nrename from ");
        section.extend_from_slice(&quoted("", from));
        section.extend_from_slice(b"\nrename to ");
        section.extend_from_slice(&quoted("", &change.path));
        section.push(b'\n');
        return Ok(section);
    }
    let before = side(change.before.as_ref(), |most| match &layers.lower {
        Some(lower) => lower.read(old_path, most),
        None => Err(std::io::ErrorKind::NotFound.into()),
    })?;
    let after = side(change.after.as_ref(), |most| {
        layers.upper.read(&change.path, most)
    })?;
    match (&before, &after) {
        // Git knows no change from one kind to another.
        (Some(old), Some(new)) if (old.mode == LINK) != (new.mode == LINK) => {
            one_file(&mut section, &change.path, before.as_ref(), None);
            one_file(&mut section, &change.path, None, after.as_ref());
        }
        _ => one_file(&mut section, &change.path, before.as_ref(), after.as_ref()),
    }
    Ok(section)
}

fn side(
    node: Option<&Node>,
    read: impl FnOnce(usize) -> std::io::Result<Option<Vec<u8>>>,
) -> Result<Option<Side>, String> {
    match node {
        None => Ok(None),
        Some(Node::Directory) => Err("an empty directory".to_owned()),
        Some(Node::Special | Node::Whiteout) => Err("a pipe, a socket or a device".to_owned()),
        Some(Node::Link { target }) => Ok(Some(Side {
            mode: LINK,
            content: target.as_bytes().to_vec(),
        })),
        Some(Node::File { is_executable, .. }) => {
            let content = read(FILE_BYTES_MAX).map_err(|error| error.to_string())?;
            let content = content.ok_or_else(|| format!("longer than {FILE_BYTES_MAX} bytes"))?;
            let begin = content.get(..BINARY_PROBE).unwrap_or(&content);
            if begin.contains(&0) {
                return Err("a binary file".to_owned());
            }
            let mode = if *is_executable { EXECUTABLE } else { PLAIN };
            Ok(Some(Side { mode, content }))
        }
    }
}

fn header(out: &mut Vec<u8>, old: &Path, new: &Path) {
    out.extend_from_slice(b"diff --git ");
    out.extend_from_slice(&quoted("a/", old));
    out.push(b' ');
    out.extend_from_slice(&quoted("b/", new));
    out.push(b'\n');
}

fn one_file(out: &mut Vec<u8>, path: &Path, before: Option<&Side>, after: Option<&Side>) {
    header(out, path, path);
    let modes = match (before, after) {
        (None, Some(after)) => format!("new file mode {}\n", after.mode),
        (Some(before), None) => format!("deleted file mode {}\n", before.mode),
        (Some(before), Some(after)) if before.mode != after.mode => {
            format!("old mode {}\nnew mode {}\n", before.mode, after.mode)
        }
        _ => String::new(),
    };
    out.extend_from_slice(modes.as_bytes());
    let old = before.map_or(&[][..], |side| &side.content);
    let new = after.map_or(&[][..], |side| &side.content);
    if old == new {
        return;
    }
    for (mark, prefix, side) in [("---", "a/", before), ("+++", "b/", after)] {
        let mut name = match side {
            Some(_) => quoted(prefix, path),
            None => b"/dev/null".to_vec(),
        };
        // The end of a name with a blank is told by a tab.
        if side.is_some() && name.contains(&b' ') && !name.starts_with(b"\"") {
            name.push(b'\t');
        }
        out.extend_from_slice(mark.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&name);
        out.push(b'\n');
    }
    hunks(out, old, new);
}

fn hunks(out: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let until = Instant::now().checked_add(EXACT);
    let changes = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, until);
    for group in group_diff_ops(changes, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let old_lines = first.old_range().start..last.old_range().end;
        let new_lines = first.new_range().start..last.new_range().end;
        let (removed, added) = (span(&old_lines), span(&new_lines));
        // Writing to a vector cannot fail.
        let _ = writeln!(out, "@@ -{removed} +{added} @@");
        for change in &group {
            let (tag, of_old, of_new) = change.as_tag_tuple();
            let (before, after) = (
                old.get(of_old).unwrap_or_default(),
                new.get(of_new).unwrap_or_default(),
            );
            match tag {
                DiffTag::Equal => lines(out, b' ', before),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    lines(out, b'-', before);
                    lines(out, b'+', after);
                }
            }
        }
    }
}

fn lines(out: &mut Vec<u8>, mark: u8, lines: &[&[u8]]) {
    for line in lines {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// A range as a hunk names it: counted from 1, and from the line before where it is empty.
fn span(lines: &std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// A path as git writes it: as it is, or in quotes with escapes.
pub(super) fn quoted(prefix: &str, path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    let is_plain = std::str::from_utf8(bytes).is_ok()
        && !bytes
            .iter()
            .any(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\'));
    if is_plain {
        return [prefix.as_bytes(), bytes].concat();
    }
    let mut out = Vec::with_capacity(bytes.len() + prefix.len() + 8);
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte if byte.is_ascii_control() || !byte.is_ascii() => {
                out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// A path as text, for lists.
pub(super) fn shown(path: impl AsRef<OsStr>) -> String {
    zareba_executor::printable_path(Path::new(path.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_misread_are_quoted() {
        let quoted = |name: &[u8]| {
            let path = Path::new(OsStr::from_bytes(name));
            String::from_utf8(quoted("a/", path)).unwrap()
        };
        assert_eq!(quoted(b"plain name"), "a/plain name");
        assert_eq!(quoted("é".as_bytes()), "a/é");
        assert_eq!(quoted(b"x\n+++ b/y"), r#""a/x\n+++ b/y""#);
        assert_eq!(quoted(b"\x1b\"\\\xff\t"), r#""a/\033\"\\\377\t""#);
    }

    #[test]
    fn hunks_have_three_lines_of_context_and_tell_a_missing_end() {
        let mut out = Vec::new();
        hunks(&mut out, b"1\n2\n3\n4\n5\n6", b"1\n2\n3\n4\nfive\n6\n");
        let expected = "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n-6\n\\ No newline at end of file\n\
                        +five\n+6\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        hunks(&mut out, b"", b"a\n");
        assert_eq!(String::from_utf8(out).unwrap(), "@@ -0,0 +1 @@\n+a\n");
    }
}
