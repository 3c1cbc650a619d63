//! The table of `/proc/PID/limits`.

use super::error::ReadBackError;

const FILE: &str = "limits";

/// One limit of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLimit {
    /// What the kernel calls it, such as `Max open files`.
    pub name: String,
    /// In force now; `None` is no limit.
    pub soft: Option<u64>,
    /// Up to which the process itself may raise it.
    pub hard: Option<u64>,
}

/// Columns have a fixed width, with at least one blank between them, and names hold blanks.
pub(super) fn parse(text: &str) -> Result<Vec<ProcessLimit>, ReadBackError> {
    /// The kernel has sixteen.
    const LINES_MAX: usize = 64;
    let bad = |line: &str| ReadBackError::bad_value(FILE, "limit", line);
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let width = head.find("Soft Limit").ok_or_else(|| bad(head))?;
    let mut limits = Vec::new();
    for line in lines {
        if limits.len() == LINES_MAX {
            return Err(bad(line));
        }
        limits.push(parse_line(line, width).ok_or_else(|| bad(line))?);
    }
    Ok(limits)
}

fn parse_line(line: &str, width: usize) -> Option<ProcessLimit> {
    let (name, values) = line.split_at_checked(width)?;
    let mut values = values.split(' ').filter(|word| !word.is_empty());
    Some(ProcessLimit {
        name: name.trim_end().to_owned(),
        soft: value(values.next()?)?,
        hard: value(values.next()?)?,
    })
}

fn value(word: &str) -> Option<Option<u64>> {
    if word == "unlimited" {
        return Some(None);
    }
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| word.parse().ok()).flatten().map(Some)
}
