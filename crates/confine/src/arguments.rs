//! The arguments that a process was started with, which everyone in its namespace can read.
//!
//! The first process of a sandbox is a copy of its launcher, and would show the launcher's own
//! arguments inside: paths of the machine, and what the operator chose.

use std::{fs, io, sync::OnceLock};

use crate::sys;

/// Puts another text in the place of the arguments of this process, and of no other that is a copy
/// of it; as much of it as fits.
///
/// # Errors
/// When they cannot be found or written to.
pub fn show(text: &[u8]) -> io::Result<()> {
    let (start, end) = place()?;
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let mut bytes = vec![0; length];
    // The last byte stays zero, or the kernel would take what follows for arguments as well.
    let shown = text.len().min(length.saturating_sub(1));
    if let (Some(place), Some(text)) = (bytes.get_mut(..shown), text.get(..shown)) {
        place.copy_from_slice(text);
    }
    sys::overwrite_arguments(start, &bytes);
    Ok(())
}

/// Finds out ahead of [`show`] where they are, for copies of this process.
///
/// # Errors
/// When that cannot be found out.
pub(crate) fn find() -> io::Result<()> {
    place().map(drop)
}

/// Where they are: the same in every copy of this process, so it is found out once.
fn place() -> io::Result<(u64, u64)> {
    static FOUND: OnceLock<(u64, u64)> = OnceLock::new();
    if let Some(place) = FOUND.get() {
        return Ok(*place);
    }
    let found = block(&fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::other("the address of the arguments is not known"))?;
    Ok(*FOUND.get_or_init(|| found))
}

/// Where they begin and end: fields 48 and 49 of `stat`, counted from 1.
fn block(stat: &str) -> Option<(u64, u64)> {
    // The name in parentheses may hold anything; the fields behind it start with number 3.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(48 - 3);
    let (start, end) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (start != 0 && start <= end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_found_behind_any_process_name() {
        let fields: Vec<String> = (3..=52).map(|number| format!("{number}000")).collect();
        let stat = format!("1 (a) b) S) {}", fields.join(" "));
        assert_eq!(block(&stat), Some((48000, 49000)));
        assert_eq!(block("1 (a) S 1 2"), None);
    }
}
