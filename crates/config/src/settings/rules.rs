//! Rules that a type alone does not say.

use std::time::Duration;

use crate::setting::Mismatch;
use crate::volumes;

/// More idle servers than one machine has use for; a larger number is a slip of the keyboard.
const WARM_SERVERS_MAX: u16 = 64;

/// A timeout of zero would end every command before it starts.
pub(super) fn positive(duration: &Duration) -> Result<(), Mismatch> {
    if duration.is_zero() {
        return Err(Mismatch::rule("must be more than 0 seconds"));
    }
    Ok(())
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
