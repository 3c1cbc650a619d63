//! The control groups of a sandbox: made with its limits, and removed when it is gone.

use std::{
    cell::OnceCell,
    fs, io,
    os::{fd::BorrowedFd, unix::ffi::OsStrExt as _},
    path::Path,
    sync::OnceLock,
    time::Duration,
};

use rustix::process::Pid;
use sha2::{Digest as _, Sha256};
use zareba_confine::{
    cgroup::{Begun, CgroupError, Demand, Entrance, Group, Host, Leaf, Limits},
    is_root_of_machine,
};
use zareba_runtime::Strictness;

use super::{
    described::Description,
    supervise::{Preparing as _, SuperviseError, Supervision, Usage},
};

/// How long what is left of a sandbox may take to be gone.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Whether there is no sandbox without control groups: root of the machine gets one only on request.
pub(super) fn are_demanded(strictness: Strictness) -> bool {
    is_root_of_machine() && strictness == Strictness::Strict
}

/// What the control groups of a sandbox are made from.
pub(super) struct Plan {
    host: &'static Host,
    name: String,
    limits: Limits,
}

impl Plan {
    pub(super) fn of(supervision: &Supervision) -> Result<Self, SuperviseError> {
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
            // Without groups there are other means; what they cannot hold is told.
            demand: match are_demanded(supervision.strictness) {
                true => Demand::Enforced,
                false => Demand::BestEffort,
            },
        };
        Ok(Self {
            host: this_machine()?,
            name: group_name(&supervision.directory).preparing("its control group")?,
            limits,
        })
    }

    /// Makes as much as the sandbox needs to be born.
    pub(super) fn begin(&self) -> Result<Groups<'_>, SuperviseError> {
        let begun = Group::begin(self.host, &self.name, &self.limits, "all");
        let begun = begun.inspect_err(|_| self.let_go())?;
        Ok(Groups {
            begun,
            made: OnceCell::new(),
        })
    }

    /// Kills what is left in the sandbox's groups, however many there are, and removes them.
    pub(super) fn let_go(&self) {
        if let Ok(Some(group)) = Group::open(self.host, &self.name) {
            end(&group);
        }
    }
}

/// The control groups that hold a sandbox to its limits.
pub(super) struct Groups<'a> {
    begun: Begun<'a>,
    made: OnceCell<Result<(Group, Leaf), CgroupError>>,
}

impl Groups<'_> {
    pub(super) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.begun.birthplace()
    }

    /// Makes what is missing, and opens the way in.
    pub(super) fn make(&self) -> io::Result<Entrance> {
        match self.made.get_or_init(|| self.begun.finish()) {
            Ok((_, leaf)) => leaf.entrance().map_err(io::Error::other),
            // It is told by whoever asks why.
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Whether the process is in all of them.
    pub(super) fn confirm(&self, pid: i32) -> io::Result<()> {
        match (Pid::from_raw(pid), self.made.get()) {
            (Some(pid), Some(Ok((_, leaf)))) => leaf.confirm(pid).map_err(io::Error::other),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The group, when it was made.
    pub(super) fn group(&self) -> Option<&Group> {
        match self.made.get() {
            Some(Ok((group, _))) => Some(group),
            _ => None,
        }
    }

    /// Why it was not, if it could not be.
    pub(super) fn into_error(self) -> Option<CgroupError> {
        self.made.into_inner()?.err()
    }
}

/// Kills what is left in a group, and removes it.
pub(super) fn end(group: &Group) {
    if group.is_available() {
        let _ = group.kill(END_WITHIN);
        let _ = group.remove(END_WITHIN);
    }
}

/// Sandboxes of different state directories may have the same name, and names may hold what a
/// control group's may not. Directories are never the same.
fn group_name(directory: &Path) -> io::Result<String> {
    Ok(name_for(&fs::canonicalize(directory)?))
}

/// The same with every version of the program and of its compiler: a server of a later one removes
/// what an earlier one has left.
fn name_for(directory: &Path) -> String {
    let hash = Sha256::digest(directory.as_os_str().as_bytes());
    let digits: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sandbox-{digits}")
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

static FOUND: OnceLock<Host> = OnceLock::new();

/// Where control groups are mounted, found out once: it hardly ever changes, and reading all of it
/// for every sandbox takes as long as everything else that is read of one.
pub(super) fn this_machine() -> Result<&'static Host, CgroupError> {
    if let Some(host) = FOUND.get() {
        return Ok(host);
    }
    let host = Host::detect()?;
    Ok(FOUND.get_or_init(|| host))
}

/// Finds it out for copies of this process, unless something is withheld: then somebody may be about
/// to mend that, and each copy looks for itself.
pub(super) fn look_ahead() {
    if let Ok(host) = Host::detect()
        && host
            .hierarchies()
            .iter()
            .all(|place| place.withheld.is_empty())
    {
        let _ = FOUND.set(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_group_is_the_same_in_every_build() {
        assert_eq!(
            name_for(Path::new("/var/lib/zareba/a")),
            "sandbox-4220f0055c4f4d25"
        );
    }
}
