//! The control groups of a sandbox: made with its limits, and removed when it is gone.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::Path,
    sync::OnceLock,
    time::Duration,
};

use zareba_confine::cgroup::{CgroupError, Demand, Group, Host, Leaf, Limits};

use super::{
    described::Description,
    supervise::{Preparing as _, SuperviseError, Supervision, Usage},
};

/// How long what is left of a sandbox may take to be gone.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The control groups that hold the sandbox to its limits.
pub(super) fn hold(supervision: &Supervision) -> Result<(Group, Leaf), SuperviseError> {
    let group = make_group(supervision)?;
    match group.only_leaf("all") {
        Ok(leaf) => Ok((group, leaf)),
        Err(error) => {
            let _ = group.remove(END_WITHIN);
            Err(error.into())
        }
    }
}

/// Kills what is left in them, and removes them.
pub(super) fn let_go(group: &Group) {
    if group.is_available() {
        let _ = group.kill(END_WITHIN);
        let _ = group.remove(END_WITHIN);
    }
}

fn make_group(supervision: &Supervision) -> Result<Group, SuperviseError> {
    let Usage {
        memory_bytes,
        pids,
        cpu_millis,
        disk: _,
    } = supervision.limits;
    let limits = Limits {
        memory_bytes: Some(memory_bytes),
        pids: Some(pids),
        cpu_millis: Some(cpu_millis),
        io: Vec::new(),
        // A user without delegated groups has the limits of each process only, and is told.
        demand: if rustix::process::geteuid().is_root() {
            Demand::Enforced
        } else {
            Demand::BestEffort
        },
    };
    let name = group_name(&supervision.directory).preparing("its control group")?;
    Ok(Group::create(&Host::detect()?, &name, &limits)?)
}

/// Sandboxes of different state directories may have the same name, and names may hold what a
/// control group's may not. Directories are never the same.
fn group_name(directory: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::canonicalize(directory)?.hash(&mut hasher);
    Ok(format!("sandbox-{:016x}", hasher.finish()))
}

/// Kills and removes what is left of a sandbox's control groups, when its supervisor could not.
pub(crate) fn forget_group(directory: &Path) {
    let Ok(host) = this_machine() else { return };
    let found = match Description::read(directory) {
        Some(description) => Group::open_at(host, &description.groups),
        // Killed before it had written anything down.
        None => match group_name(directory) {
            Ok(name) => Group::open(host, &name),
            Err(_) => return,
        },
    };
    let Ok(Some(group)) = found else { return };
    let removed = group
        .kill(END_WITHIN)
        .and_then(|()| group.remove(END_WITHIN));
    if let Err(error) = removed {
        tracing::warn!(sandbox = group.id(), %error, "cannot remove a sandbox's control groups");
    }
}

/// Where control groups are mounted, found out once: it hardly ever changes, and reading all of it
/// for every sandbox takes as long as everything else that is read of one.
pub(super) fn this_machine() -> Result<&'static Host, CgroupError> {
    static FOUND: OnceLock<Host> = OnceLock::new();
    if let Some(host) = FOUND.get() {
        return Ok(host);
    }
    let host = Host::detect()?;
    Ok(FOUND.get_or_init(|| host))
}
