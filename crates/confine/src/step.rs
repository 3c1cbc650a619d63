//! The steps of a launch, and how a failed one travels from the child to the parent.

use std::{fmt, io};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::restriction::{self, Restriction};

/// What was being done when a launch failed. Each step knows what a person can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Making the process with its namespaces.
    Namespaces,
    /// Putting the process under limits.
    ControlGroup,
    /// Mapping users and groups.
    IdentityMap,
    /// Waiting for the other side.
    HandShake,
    /// Making all mounts private.
    PrivateMounts,
    /// Putting the new root together.
    Root,
    /// Mounting an entry.
    Entry,
    /// Mounting `/proc` and masking it.
    Proc,
    /// Making `/dev`.
    Devices,
    /// Moving into the new root.
    PivotRoot,
    /// Forbidding further user namespaces.
    NestedNamespaces,
    /// Lowering what the kernel lets each user have.
    Quotas,
    /// Naming the machine.
    Hostname,
    /// Bringing the loopback interface up.
    Loopback,
    /// Taking hold of the new process's network from outside.
    Doorway,
    /// Making every address local.
    Routes,
    /// Listening where the sandbox shall find somebody.
    Listeners,
    /// Becoming the sandbox's user.
    Identity,
    /// Closing descriptors.
    Descriptors,
    /// Setting resource limits.
    ResourceLimits,
    /// Dropping capabilities.
    Capabilities,
    /// Enforcing Landlock.
    Landlock,
    /// Installing the system call filter.
    Seccomp,
    /// Starting the program.
    Exec,
}

impl Step {
    /// What a person can do when this step fails with this error, where this switch is set.
    ///
    /// The private mounts are the first that needs a right in the new namespaces: where the system keeps
    /// rights from them, this step fails, and later ones are not reached.
    pub(crate) fn remedy_for(
        self,
        error: &io::Error,
        find: impl FnOnce() -> Option<Restriction>,
    ) -> &'static str {
        let number = error.raw_os_error().map(Errno::from_raw_os_error);
        let refused = matches!(number, Some(Errno::PERM | Errno::ACCESS | Errno::NOSPC));
        let early = matches!(
            self,
            Self::Namespaces | Self::IdentityMap | Self::PrivateMounts
        );
        let found = if early && refused { find() } else { None };
        // A profile such as Docker's refuses mounts; what is refused before them has another reason.
        let is_reason =
            |found: &Restriction| *found != Restriction::Profile || self == Self::PrivateMounts;
        let found = found.filter(is_reason);
        found.map_or_else(|| self.remedy(), Restriction::remedy)
    }

    /// What a person can do when this step fails and nothing more is known.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Namespaces | Self::IdentityMap => restriction::ANY,
            Self::Proc => {
                "a fresh /proc is refused where the one outside is masked, as in most containers: run outside \
                 the container, or start it with an unmasked /proc (`docker run --security-opt systempaths=unconfined`, \
                 `procMount: Unmasked` of a pod)"
            }
            Self::Entry | Self::Root | Self::PrivateMounts | Self::PivotRoot => {
                "the mount was refused: look at the path that is named, and at the kernel's support for overlayfs \
                 in user namespaces (5.11 and later; 5.19 with owners translated); inside a container, keep the state \
                 directory on a volume, because changes to an overlay cannot be kept on another overlay"
            }
            Self::Seccomp | Self::Landlock => {
                "the kernel lacks this filter: use Linux 5.13 or later with CONFIG_SECCOMP_FILTER and \
                 CONFIG_SECURITY_LANDLOCK, or choose a weaker profile explicitly"
            }
            Self::Listeners => {
                "name at most 64 TCP ports for the network, none of them 0, and let the launcher have 200 descriptors \
                 more than it has open"
            }
            Self::HandShake
            | Self::ControlGroup
            | Self::Devices
            | Self::NestedNamespaces
            | Self::Quotas
            | Self::Hostname
            | Self::Loopback
            | Self::Doorway
            | Self::Routes
            | Self::Identity
            | Self::Descriptors
            | Self::ResourceLimits
            | Self::Capabilities
            | Self::Exec => {
                "run `zareba doctor`, which tries each layer on its own and explains what is missing"
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Namespaces => "make the namespaces",
            Self::ControlGroup => "put the process under limits",
            Self::IdentityMap => "map users and groups",
            Self::HandShake => "hear from the other side",
            Self::PrivateMounts => "make mounts private",
            Self::Root => "put the new root together",
            Self::Entry => "mount an entry",
            Self::Proc => "mount /proc",
            Self::Devices => "make /dev",
            Self::PivotRoot => "move into the new root",
            Self::NestedNamespaces => "forbid further user namespaces",
            Self::Quotas => "lower the kernel's quotas for each user",
            Self::Hostname => "name the machine",
            Self::Loopback => "bring up the loopback interface",
            Self::Doorway => "take hold of the sandbox's network",
            Self::Routes => "make every address local",
            Self::Listeners => "listen inside the sandbox",
            Self::Identity => "become the sandbox's user",
            Self::Descriptors => "close descriptors",
            Self::ResourceLimits => "set resource limits",
            Self::Capabilities => "drop capabilities",
            Self::Landlock => "enforce Landlock",
            Self::Seccomp => "install the system call filter",
            Self::Exec => "start the program",
        })
    }
}

/// A failed step, as it is sent through a pipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// The error number, or 0 when there is none.
    pub(crate) errno: i32,
    /// On what, such as a path.
    pub(crate) object: String,
}

impl Failure {
    pub(crate) fn new(step: Step, object: impl Into<String>, error: &io::Error) -> Self {
        Self {
            step,
            errno: error.raw_os_error().unwrap_or(0),
            object: object.into(),
        }
    }
}

/// Names the step and the object of a failed call.
pub(crate) trait AtStep<T> {
    fn at(self, step: Step, object: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: Step, object: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(step, object, &error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy(step: Step, errno: Errno, found: Option<Restriction>) -> &'static str {
        step.remedy_for(&errno.into(), || found)
    }

    #[test]
    fn a_mount_that_apparmor_refuses_is_told_with_its_switch_and_not_with_overlayfs() {
        let found = Some(Restriction::AppArmor);
        for errno in [Errno::PERM, Errno::ACCESS] {
            let told = remedy(Step::PrivateMounts, errno, found);
            let command = "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";
            assert!(told.contains(command), "{told}");
            assert!(!told.contains("overlay"), "{told}");
        }
    }

    #[test]
    fn other_errors_and_later_steps_keep_their_own_remedy() {
        let found = Some(Restriction::AppArmor);
        let told = remedy(Step::PrivateMounts, Errno::NOMEM, found);
        assert_eq!(told, Step::PrivateMounts.remedy());
        let told = remedy(Step::Entry, Errno::ACCESS, found);
        assert_eq!(told, Step::Entry.remedy());
        let told = remedy(Step::Namespaces, Errno::PERM, None);
        assert_eq!(told, Step::Namespaces.remedy());
    }

    #[test]
    fn namespaces_that_are_used_up_are_told_with_their_limit() {
        let told = remedy(Step::Namespaces, Errno::NOSPC, Some(Restriction::Limit));
        assert!(
            told.contains("`sudo sysctl -w user.max_user_namespaces=15000`"),
            "{told}"
        );
    }
}
