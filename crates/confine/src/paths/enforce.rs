//! Making the rules and putting them into force, in two steps: paths are opened while they can
//! be, and the rules enforced once nothing else has to be done.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, PathFd, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};

use super::{
    error::LandlockError,
    report::{LandlockReport, MissingRight},
    sys,
};

/// Which paths may be used for what. What is not below one of them cannot be opened at all.
///
/// The lists add up: a directory whose programs may run and whose files may change is in two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPolicy {
    /// Files can be read, directories listed.
    pub read_only: Vec<PathBuf>,
    /// The same, and everything in them changed; devices among them take commands.
    pub read_write: Vec<PathBuf>,
    /// Programs can be started.
    pub execute: Vec<PathBuf>,
    /// Which TCP ports can be used; `None` leaves them to the network namespace.
    pub tcp: Option<TcpPorts>,
    /// Who outside can be reached.
    pub reach: Reach,
}

/// TCP ports, of any address. UDP is not covered by any kernel that this version knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPorts {
    /// Ports to listen on.
    pub bind: Vec<u16>,
    /// Ports to connect to.
    pub connect: Vec<u16>,
}

/// Whether processes and abstract sockets outside can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only what is confined by the same rules, on kernels that can (ABI 6).
    Inside,
    /// Whatever the namespaces leave visible.
    Everything,
}

/// Rules that are not in force yet.
#[derive(Debug)]
pub struct Ruleset {
    created: RulesetCreated,
    abi: i32,
    missing: Vec<MissingRight>,
}

impl Ruleset {
    /// Opens every path of a policy and makes the rules, at the best ABI there is.
    ///
    /// # Errors
    /// When the kernel has no Landlock, cannot restrict the ports that the policy lists, or a
    /// path is not there: a rule that silently vanished would be a policy nobody wrote.
    pub fn prepare(policy: &PathPolicy) -> Result<Self, LandlockError> {
        let abi = sys::abi().map_err(|source| LandlockError::Unavailable { source })?;
        let known = ABI::from(abi);
        let missing = missing(policy, abi);
        if policy.tcp.is_some() && missing.contains(&MissingRight::TcpPorts) {
            return Err(LandlockError::TooOld {
                abi,
                missing: MissingRight::TcpPorts,
            });
        }
        let created = handled(policy, known).map_err(rules)?;
        let mut ruleset = Self {
            created,
            abi,
            missing,
        };
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = AccessFs::from_write(known) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let roots = [
            (&policy.read_only, read),
            (&policy.read_write, read | write),
            (&policy.execute, read | AccessFs::Execute),
        ];
        for (path, access) in added_up(roots) {
            ruleset = ruleset.allow_path(path, access)?;
        }
        ruleset.allow_ports(policy.tcp.as_ref())
    }

    /// Puts the rules into force for the calling thread and whatever it becomes or starts. There
    /// is no way back. Sets `no_new_privs`.
    ///
    /// # Errors
    /// When the kernel refuses, or enforces less than it was asked for.
    pub fn enforce(self) -> Result<LandlockReport, LandlockError> {
        let enforced = self.created.restrict_self();
        let status = enforced.map_err(|error| LandlockError::Enforce {
            source: Box::new(error),
        })?;
        if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
            return Err(LandlockError::Incomplete);
        }
        Ok(LandlockReport::of(self.abi, self.missing))
    }

    fn allow_path(self, path: &Path, access: BitFlags<AccessFs>) -> Result<Self, LandlockError> {
        let opened = PathFd::new(path).map_err(|error| LandlockError::OpenPath {
            path: path.to_owned(),
            source: match error {
                landlock::PathFdError::OpenCall { source, .. } => source,
                other => std::io::Error::other(other),
            },
        })?;
        self.allow(opened.as_fd(), access)
    }

    fn allow(
        self,
        opened: BorrowedFd<'_>,
        access: BitFlags<AccessFs>,
    ) -> Result<Self, LandlockError> {
        let is_directory = rustix::fs::fstat(opened)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
        // A right that only directories have is refused for a file.
        let possible = if is_directory {
            access
        } else {
            access & AccessFs::from_file(ABI::from(self.abi))
        };
        let Self {
            created,
            abi,
            missing,
        } = self;
        let created = created
            .add_rule(PathBeneath::new(opened, possible))
            .map_err(rules)?;
        Ok(Self {
            created,
            abi,
            missing,
        })
    }

    fn allow_ports(self, ports: Option<&TcpPorts>) -> Result<Self, LandlockError> {
        let Self {
            mut created,
            abi,
            missing,
        } = self;
        if let Some(ports) = ports {
            for &port in &ports.bind {
                created = created
                    .add_rule(NetPort::new(port, AccessNet::BindTcp))
                    .map_err(rules)?;
            }
            for &port in &ports.connect {
                created = created
                    .add_rule(NetPort::new(port, AccessNet::ConnectTcp))
                    .map_err(rules)?;
            }
        }
        Ok(Self {
            created,
            abi,
            missing,
        })
    }
}

/// Every path once, with all that may be done to it.
fn added_up(
    roots: [(&Vec<PathBuf>, BitFlags<AccessFs>); 3],
) -> BTreeMap<&Path, BitFlags<AccessFs>> {
    let mut sums = BTreeMap::new();
    for (paths, access) in roots {
        for path in paths {
            *sums.entry(path.as_path()).or_default() |= access;
        }
    }
    sums
}

/// Everything of this ABI is refused unless a rule allows it, and not being able to is an error.
fn handled(policy: &PathPolicy, abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = landlock::Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if policy.tcp.is_some() {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let scopes = Scope::from_all(abi);
    if policy.reach == Reach::Inside && !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    ruleset.create()
}

pub(super) fn missing(policy: &PathPolicy, abi: i32) -> Vec<MissingRight> {
    let is_wanted = |right: &MissingRight| match right {
        MissingRight::TcpPorts => policy.tcp.is_some(),
        MissingRight::Scopes => policy.reach == Reach::Inside,
        MissingRight::Refer
        | MissingRight::Truncate
        | MissingRight::DeviceCommands
        | MissingRight::PathnameSockets => true,
    };
    let unknown = MissingRight::ALL
        .into_iter()
        .filter(|right| right.since() > abi);
    unknown.filter(is_wanted).collect()
}

fn rules(error: RulesetError) -> LandlockError {
    LandlockError::Rules {
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(tcp: Option<TcpPorts>, reach: Reach) -> PathPolicy {
        PathPolicy {
            read_only: Vec::new(),
            read_write: Vec::new(),
            execute: Vec::new(),
            tcp,
            reach,
        }
    }

    #[test]
    fn what_an_old_kernel_lacks_is_named() {
        use MissingRight::{
            DeviceCommands, PathnameSockets, Refer, Scopes, TcpPorts as Tcp, Truncate,
        };
        let everything = policy(
            Some(TcpPorts {
                bind: vec![80],
                connect: vec![443],
            }),
            Reach::Inside,
        );
        let expected = [
            (
                1,
                vec![
                    Refer,
                    Truncate,
                    Tcp,
                    DeviceCommands,
                    Scopes,
                    PathnameSockets,
                ],
            ),
            (3, vec![Tcp, DeviceCommands, Scopes, PathnameSockets]),
            (5, vec![Scopes, PathnameSockets]),
            (7, vec![PathnameSockets]),
            (9, vec![]),
            (12, vec![]),
        ];
        for (abi, rights) in expected {
            assert_eq!(missing(&everything, abi), rights, "ABI {abi}");
        }
    }

    #[test]
    fn what_the_policy_does_not_ask_for_is_not_missing() {
        let files_only = policy(None, Reach::Everything);
        assert_eq!(
            missing(&files_only, 3),
            [MissingRight::DeviceCommands, MissingRight::PathnameSockets]
        );
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error() {
        let absent = PathBuf::from("/nowhere/at/all");
        let policy = PathPolicy {
            read_only: vec![absent.clone()],
            ..policy(None, Reach::Everything)
        };
        let error = Ruleset::prepare(&policy).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        assert!(matches!(error, LandlockError::OpenPath { path, .. } if path == absent));
    }
}
