//! The built-in profile as the kernel runs it, for the permissions that every start needs.
//!
//! Compiling the profile takes half a millisecond, a good part of what a sandbox takes to start.
//! A test compares these files with what the profile compiles to, and writes them anew when
//! `ZAREBA_UPDATE_SECCOMP=1` is set.

use super::{install::CompiledFilter, profile::Permissions};

/// Permissions, and the filter that they compile to here.
type Ready = (Permissions, &'static [u8]);

const ALL_INSIDE: Permissions = Permissions {
    set_id_files: true,
    ..Permissions::NONE
};

#[cfg(target_arch = "x86_64")]
const READY: &[Ready] = &[
    (Permissions::NONE, include_bytes!("ready/x86_64-plain.bpf")),
    (ALL_INSIDE, include_bytes!("ready/x86_64-set-id-files.bpf")),
];

#[cfg(not(target_arch = "x86_64"))]
const READY: &[Ready] = &[];

/// The filter for these permissions, if it is among those.
pub(super) fn find(permissions: Permissions) -> Option<CompiledFilter> {
    let (_, bytes) = READY.iter().find(|(ready, _)| *ready == permissions)?;
    CompiledFilter::from_bytes(bytes).ok()
}
