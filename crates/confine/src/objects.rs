//! System V objects, which outlive the processes that made them: a limit for those of a sandbox (NS-15).
//!
//! The kernel keeps the limits for each namespace of these objects, and lets its owner change them: root of
//! the user namespace or, where that has no root, root of the machine. An ordinary user's sandbox without a
//! root inside keeps the kernel's own limits.

use std::{
    fs::{self, File},
    io,
    os::fd::AsFd as _,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{launch::Confined, policy::Policy, privilege::is_root_of_machine};

/// Queues of messages, of 16 KiB each.
const QUEUES_MAX: u32 = 128;

/// Semaphores in one set, in all, changed at once, and sets: what the larger databases ask for.
const SEMAPHORES: &str = "250 32000 500 128";

/// Limits the objects of a sandbox as root of the machine, where there is no root inside. The calling process,
/// which must have a single thread, is in the sandbox's namespace of them meanwhile.
///
/// # Errors
/// When it cannot leave that namespace again.
pub fn limit_objects(confined: &Confined, policy: &Policy) -> io::Result<()> {
    if !is_root_of_machine() || policy.identity.uid_inside == 0 {
        return Ok(());
    }
    let kind = Some(LinkNameSpaceType::InterProcessCommunication);
    let enter = |space: &File| move_into_link_name_space(space.as_fd(), kind);
    let home = File::open("/proc/self/ns/ipc")?;
    let theirs = File::open(format!("/proc/{}/ns/ipc", confined.pid))?;
    // In a container the machine's root may lack the right to it.
    if enter(&theirs).is_ok() {
        lower(policy.memory.bytes);
        enter(&home)?;
    }
    Ok(())
}

/// Lowers the limits of the namespace that the caller is in, as far as the kernel lets it: shared memory to so
/// many bytes. Later calls do no harm.
pub(crate) fn lower(shared_bytes: u64) {
    let pages = shared_bytes / rustix::param::page_size() as u64;
    let settings = [
        ("shmall", pages.to_string()),
        ("msgmni", QUEUES_MAX.to_string()),
        ("sem", SEMAPHORES.to_owned()),
    ];
    for (name, value) in settings {
        // Not this namespace's owner, or a kernel before 5.19.
        let _ = fs::write(format!("/proc/sys/kernel/{name}"), value);
    }
}
