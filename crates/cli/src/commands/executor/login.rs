//! The login user of a container's processes, as the kernel's audit log names it.
//!
//! In a container it is unset, and each process may set it once, to any user of the machine. So the
//! first process sets it for all processes that it starts. Changing it afterwards takes a capability
//! that a hardened container does not have.

use std::{fs::File, io::Write as _};

use rustix::process::getpid;

/// The user `nobody`, which is no account of a person or a service.
const NOBODY: &[u8] = b"65534";

/// Sets it, in a container whose processes cannot gain rights. Elsewhere it is left to programs such as
/// `sshd`, which set it when a user logs in.
pub(super) fn settle() {
    let can_gain_rights = rustix::thread::no_new_privs().map_or(true, |denied| !denied);
    if !getpid().is_init() || can_gain_rights {
        return;
    }
    let file = File::options().write(true).open("/proc/self/loginuid");
    if let Err(error) = file.and_then(|mut file| file.write_all(NOBODY)) {
        // The kernel keeps no audit log, or the Engine has set it already.
        tracing::debug!(%error, "the login user of this container is not set");
    }
}
