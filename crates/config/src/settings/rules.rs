//! Rules that a type alone does not say.

use std::time::Duration;

use zareba_protocol::amounts::{self, CPU_MILLIS_MAX, CPU_MILLIS_MIN, PIDS_MIN};

use crate::setting::{Mismatch, Processors, Size};
use crate::volumes;

/// More idle servers than one machine has use for; a larger number is a slip of the keyboard.
const WARM_SERVERS_MAX: u16 = 64;

/// More waiting sandboxes than one machine has room for.
const POOL_MAX: u16 = 256;

/// Each costs a sandbox a mount, and the workspace a directory.
const GUARDED_NAMES_MAX: usize = 64;

/// The longest name of a file on Linux.
const NAME_BYTES_MAX: usize = 255;

/// What a sandbox needs to run a shell at all.
const MEMORY_MIN: Size = Size::of(amounts::MEMORY_BYTES_MIN);
const DISK_MIN: Size = Size::of(amounts::DISK_BYTES_MIN);
const INODES_MIN: u32 = 256;

/// A timeout of zero would end every command before it starts.
pub(super) fn positive(duration: &Duration) -> Result<(), Mismatch> {
    if duration.is_zero() {
        return Err(Mismatch::rule("must be more than 0 seconds"));
    }
    Ok(())
}

/// Nothing lives for no time; whoever means for ever leaves it out.
pub(super) fn positive_if_set(duration: &Option<Duration>) -> Result<(), Mismatch> {
    match duration {
        Some(Duration::ZERO) => Err(Mismatch::rule(
            "must be more than 0 seconds; leave it out for no limit",
        )),
        _ => Ok(()),
    }
}

/// Keeps a slip of the keyboard from starting thousands of processes.
pub(super) fn warm_servers(count: &u16) -> Result<(), Mismatch> {
    if *count > WARM_SERVERS_MAX {
        return Err(Mismatch::rule(format!(
            "must be at most {WARM_SERVERS_MAX}"
        )));
    }
    Ok(())
}

/// Keeps a slip of the keyboard from filling the memory.
pub(super) fn pool(size: &u16) -> Result<(), Mismatch> {
    if *size > POOL_MAX {
        return Err(Mismatch::rule(format!("must be at most {POOL_MAX}")));
    }
    Ok(())
}

pub(super) fn memory(size: &Size) -> Result<(), Mismatch> {
    at_least(*size, MEMORY_MIN)
}

pub(super) fn disk(size: &Size) -> Result<(), Mismatch> {
    at_least(*size, DISK_MIN)
}

pub(super) fn pids(count: &u32) -> Result<(), Mismatch> {
    at_least(*count, PIDS_MIN)
}

pub(super) fn inodes(count: &u32) -> Result<(), Mismatch> {
    at_least(*count, INODES_MIN)
}

pub(super) fn processors(processors: &Processors) -> Result<(), Mismatch> {
    if !(CPU_MILLIS_MIN..=CPU_MILLIS_MAX).contains(&processors.millis()) {
        return Err(Mismatch::rule("must be from 0.01 to 1024"));
    }
    Ok(())
}

/// Which networks there are is for the Engine to say.
pub(super) fn network_name(name: &str) -> Result<(), Mismatch> {
    if name.is_empty() {
        return Err(Mismatch::rule(
            "must be `none`, `machine`, `internet`, `host` or the name of a network",
        ));
    }
    Ok(())
}

pub(super) fn guarded_names(names: &[String]) -> Result<(), Mismatch> {
    if names.len() > GUARDED_NAMES_MAX {
        return Err(Mismatch::rule(format!(
            "must be at most {GUARDED_NAMES_MAX} names"
        )));
    }
    let is_name = |name: &String| {
        let is_plain = !matches!(name.as_str(), "" | "." | "..") && name.len() <= NAME_BYTES_MAX;
        is_plain && !name.contains(['/', '\0'])
    };
    match names.iter().all(is_name) {
        true => Ok(()),
        false => Err(Mismatch::rule(
            "must be names directly in the workspace, such as `.envrc`, without `/`",
        )),
    }
}

fn at_least<T: PartialOrd + std::fmt::Display>(value: T, min: T) -> Result<(), Mismatch> {
    if value < min {
        return Err(Mismatch::rule(format!("must be at least {min}")));
    }
    Ok(())
}

/// The sizes that the remote runtime API knows.
pub(super) fn resource_factor(factor: &u32) -> Result<(), Mismatch> {
    match factor {
        1 | 2 | 4 | 8 => Ok(()),
        _ => Err(Mismatch::rule("must be 1, 2, 4 or 8")),
    }
}

/// Each mount has a host part, a path inside and perhaps a mode.
pub(super) fn mounts(volumes: &Option<String>) -> Result<(), Mismatch> {
    for mount in volumes::split(volumes.as_deref().unwrap_or_default()) {
        if !matches!(mount.split(':').count(), 2 | 3) {
            return Err(Mismatch::rule(format!(
                "has the mount {mount:?}, which is not `host:container[:mode]`"
            )));
        }
    }
    Ok(())
}
