//! The lines of `/proc/PID/mountinfo`.
//!
//! Paths in it are chosen by others: a workspace can be called anything, and so can what is
//! mounted in it. The kernel writes blanks, line breaks and backslashes as octal numbers, so a
//! name cannot pose as a field; anything that it would not have written is an error.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

use super::error::ReadBackError;

const FILE: &str = "mountinfo";

/// One mount, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// Where it is, seen from the root of the process.
    pub point: PathBuf,
    /// What may not be done through it.
    pub flags: MountFlags,
    /// Whether mounts made on it appear elsewhere, or the other way round.
    pub is_shared: bool,
    /// The type of its file system, such as `overlay`.
    pub file_system: String,
}

/// Restrictions of one mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountFlags {
    /// Nothing can be written.
    pub read_only: bool,
    /// Set-id bits and file capabilities mean nothing.
    pub no_set_id: bool,
    /// Device nodes cannot be opened.
    pub no_devices: bool,
    /// Nothing can be executed.
    pub no_execution: bool,
}

impl MountFlags {
    /// Whether all that `other` forbids is forbidden here, too.
    pub fn include(self, other: Self) -> bool {
        self.read_only >= other.read_only
            && self.no_set_id >= other.no_set_id
            && self.no_devices >= other.no_devices
            && self.no_execution >= other.no_execution
    }
}

/// Understands a whole table.
///
/// # Errors
/// When a line is not written as the kernel writes it, or there are more than it ever allows.
pub fn parse_mounts(text: &[u8]) -> Result<Vec<MountLine>, ReadBackError> {
    /// The kernel's own bound on mounts of a namespace, `fs.mount-max`.
    const LINES_MAX: usize = 100_000;
    let Some(text) = text.strip_suffix(b"\n") else {
        return Err(bad(text));
    };
    let mut mounts = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        if mounts.len() == LINES_MAX {
            return Err(bad(line));
        }
        mounts.push(parse_line(line).ok_or_else(|| bad(line))?);
    }
    Ok(mounts)
}

fn bad(line: &[u8]) -> ReadBackError {
    ReadBackError::bad_value(FILE, "mount", &String::from_utf8_lossy(line))
}

/// Numbers of the mount and of its parent, device, root, point, flags, any number of tags, a
/// dash, and then type, source and options of the file system.
fn parse_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|&byte| byte == b' ');
    let _numbers = (number(fields.next()?)?, number(fields.next()?)?);
    let _device = fields.next()?;
    let _root = unescape(fields.next()?)?;
    let point = unescape(fields.next()?)?;
    let flags = parse_flags(fields.next()?);
    let mut is_shared = false;
    loop {
        match fields.next()? {
            b"-" => break,
            tag => is_shared |= tag.starts_with(b"shared:") || tag.starts_with(b"master:"),
        }
    }
    let file_system = String::from_utf8(fields.next()?.to_vec()).ok()?;
    let (_source, _options) = (fields.next()?, fields.next()?);
    let is_whole = fields.next().is_none() && point.starts_with(b"/");
    is_whole.then(|| MountLine {
        point: PathBuf::from(OsString::from_vec(point)),
        flags,
        is_shared,
        file_system,
    })
}

fn number(field: &[u8]) -> Option<u32> {
    super::status::decimal(std::str::from_utf8(field).ok()?)
}

fn parse_flags(field: &[u8]) -> MountFlags {
    let mut flags = MountFlags::default();
    for word in field.split(|&byte| byte == b',') {
        match word {
            b"ro" => flags.read_only = true,
            b"nosuid" => flags.no_set_id = true,
            b"nodev" => flags.no_devices = true,
            b"noexec" => flags.no_execution = true,
            _ => {}
        }
    }
    flags
}

/// A backslash stands before the three octal digits of a byte, and nowhere else.
fn unescape(field: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        if first == b'\\' {
            let (digits, after) = after.split_at_checked(3)?;
            bytes.push(octal(digits)?);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    Some(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}
