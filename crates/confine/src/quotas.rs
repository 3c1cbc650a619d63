//! Quotas that the kernel keeps per user (NS-9, NS-15).
//!
//! How much may be watched by inotify, and how many namespaces there may be, the kernel counts for
//! each user and for each user namespace up to the machine's. So a sandbox that used up the quota of
//! the user who started it would leave nothing to that user, nor to other sandboxes. Two things
//! keep it from that. As root, a sandbox's namespace is made in the name of a user that no other
//! sandbox has: what is used in it is charged to that user. Without root it is charged to the one who
//! started it, and the sandbox gets a share.

use std::{fs, io, path::PathBuf};

use rustix::{
    process::DumpableBehavior,
    thread::{CapabilitySets, Uid},
};

use crate::{
    policy::Identity,
    privilege::is_root_of_machine,
    step::{AtStep as _, Failure, Step},
};

/// What a sandbox needs none of: seccomp refuses what would make them.
const NONE: [&str; 10] = [
    "max_cgroup_namespaces",
    "max_fanotify_groups",
    "max_fanotify_marks",
    "max_ipc_namespaces",
    "max_mnt_namespaces",
    "max_net_namespaces",
    "max_pid_namespaces",
    "max_time_namespaces",
    "max_user_namespaces",
    "max_uts_namespaces",
];

/// What watchers of files need, and where the machine says how much of it a user may have.
const SHARED: [(&str, &str); 2] = [
    ("max_inotify_instances", "max_user_instances"),
    ("max_inotify_watches", "max_user_watches"),
];

/// So many sandboxes together use up what their user may have.
const SHARES: u64 = 8;

/// Who is charged for what a sandbox uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// A user whom no other sandbox has.
    Own,
    /// The user who has started it, and maybe others.
    Shared,
}

/// Lowers the quotas of the user namespace that this process is in, and asks for each of them.
pub(crate) fn lower(account: Account) -> Result<(), Failure> {
    for name in NONE {
        write(name, 0).at(Step::Quotas, name)?;
    }
    for (name, machine) in SHARED {
        let path = format!("/proc/sys/fs/inotify/{machine}");
        // A kernel without inotify has neither.
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let most = text.trim().parse().unwrap_or(0);
        write(name, share(most, account)).at(Step::Quotas, name)?;
    }
    Ok(())
}

fn share(most: u64, account: Account) -> u64 {
    match account {
        Account::Own => most,
        Account::Shared => most.div_ceil(SHARES),
    }
}

fn write(name: &str, value: u64) -> io::Result<()> {
    let path = PathBuf::from("/proc/sys/user").join(name);
    let text = value.to_string();
    match fs::write(&path, &text) {
        // What the kernel does not have needs no quota.
        Err(error) if error.kind() == io::ErrorKind::NotFound && name != "max_user_namespaces" => {
            return Ok(());
        }
        written => written?,
    }
    match fs::read_to_string(&path)?.trim() == text {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// While it is held, user namespaces that this process makes are charged to another user.
#[must_use = "the process stays another user"]
#[derive(Debug)]
pub(crate) struct Charged {
    user: Uid,
    effective: Uid,
    sets: CapabilitySets,
    dumpable: DumpableBehavior,
}

impl Charged {
    /// For root only: others have one user. The capabilities stay in force, so this process may do all
    /// that it could before.
    pub(crate) fn to(identity: Identity) -> io::Result<Option<Self>> {
        if !is_root_of_machine() {
            return Ok(None);
        }
        let charged = Self {
            user: rustix::process::getuid(),
            effective: rustix::process::geteuid(),
            sets: rustix::thread::capabilities(None)?,
            dumpable: rustix::process::dumpable_behavior()?,
        };
        charged.become_user(Uid::from_raw(identity.uid_outside))?;
        Ok(Some(charged))
    }

    /// To be called by the process that began it, and not by one that it has made meanwhile.
    pub(crate) fn end(self) -> io::Result<()> {
        self.become_user(self.effective)
    }

    fn become_user(&self, effective: Uid) -> io::Result<()> {
        rustix::thread::set_thread_res_uid(self.user, effective, self.effective)?;
        // The change takes both away.
        rustix::thread::set_capabilities(None, self.sets)?;
        Ok(rustix::process::set_dumpable_behavior(self.dumpable)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_account_is_never_used_up_by_one_sandbox_and_leaves_each_something() {
        assert_eq!(share(128, Account::Shared), 16);
        assert_eq!(share(1, Account::Shared), 1);
        assert_eq!(share(128, Account::Own), 128);
    }
}
