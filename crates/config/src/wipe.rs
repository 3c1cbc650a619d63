//! Making this process forget the secrets that it was started with.
//!
//! A process shows the environment it was started with in `/proc/PID/environ`, to every process
//! of the same user, for as long as it lives; unsetting a variable does not change that. So the
//! bytes themselves are overwritten.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
};

/// Variables whose values are keys to ourselves.
const KEYS: [&str; 3] = ["SESSION_API_KEY", "ZAREBA_API_KEY", "ZAREBA_MCP_TOKEN"];

/// Overwrites the values of our own keys in this process's environment block.
///
/// Call it after [`Environment::from_process`](crate::Environment::from_process) and before the
/// process has a second thread, which might be reading the environment meanwhile.
///
/// # Errors
/// When `/proc` is not there or the kernel forbids a process to write its own memory; the keys
/// can then be read by processes of the same user.
pub fn wipe_keys() -> io::Result<()> {
    // As in a copy of a process that was started without any.
    if KEYS.iter().all(|key| env::var_os(key).is_none()) {
        return Ok(());
    }
    let block = fs::read("/proc/self/environ")?;
    let values: Vec<(usize, usize)> = values_of(&block, &KEYS);
    if values.is_empty() {
        return Ok(());
    }
    let start = block_start(&fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::other("the environment's address is not known"))?;
    let memory = File::options().write(true).open("/proc/self/mem")?;
    for (offset, length) in values {
        memory.write_all_at(&vec![0; length], start + offset as u64)?;
    }
    Ok(())
}

/// Offsets and lengths of the values of `names` in a block of `NAME=value` strings.
fn values_of(block: &[u8], names: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for entry in block.split(|&byte| byte == 0) {
        let name = names.iter().find(|name| {
            entry
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        });
        if let Some(name) = name {
            found.push((offset + name.len() + 1, entry.len() - name.len() - 1));
        }
        offset += entry.len() + 1;
    }
    found
}

/// The address of the environment block: field 50 of `stat`, counted from 1.
fn block_start(stat: &str) -> Option<u64> {
    // The name in parentheses may hold anything; the fields behind it start with number 3.
    let (_, fields) = stat.rsplit_once(')')?;
    let start = fields.split_ascii_whitespace().nth(50 - 3)?.parse().ok()?;
    (start != 0).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_values_of_whole_names_are_found() {
        let block = b"A=1\0SESSION_API_KEY=secret\0XSESSION_API_KEY=x\0SESSION_API_KEYS=y\0ZAREBA_API_KEY=\0";
        let found = values_of(block, &KEYS);
        assert_eq!(found, [(20, 6), (block.len() - 1, 0)]);
        assert_eq!(&block[20..26], b"secret");
    }

    #[test]
    fn the_address_is_found_behind_any_process_name() {
        let fields: Vec<String> = (3..=52).map(|number| format!("{number}000")).collect();
        let stat = format!("1 (a) b) S) {}", fields.join(" "));
        assert_eq!(block_start(&stat), Some(50_000));
    }
}
