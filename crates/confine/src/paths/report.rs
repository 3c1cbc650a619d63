//! What Landlock really covers on this kernel.

use super::enforce::{PathPolicy, missing};

/// How much of what was asked for is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// All that this version knows to ask for.
    Full,
    /// All that this kernel can do; the report says what it cannot.
    Partial,
}

/// A right that this version would restrict, and this kernel does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingRight {
    /// Moving and linking between directories; refused altogether without it. ABI 2.
    Refer,
    /// Truncating files that may only be read. ABI 3.
    Truncate,
    /// Binding and connecting TCP ports. ABI 4.
    TcpPorts,
    /// Commands to devices. ABI 5.
    DeviceCommands,
    /// Abstract sockets and signals to the outside. ABI 6.
    Scopes,
    /// Sockets that have a path. ABI 9.
    PathnameSockets,
}

impl MissingRight {
    pub(super) const ALL: [Self; 6] = [
        Self::Refer,
        Self::Truncate,
        Self::TcpPorts,
        Self::DeviceCommands,
        Self::Scopes,
        Self::PathnameSockets,
    ];

    /// The first ABI that has it.
    pub fn since(self) -> i32 {
        match self {
            Self::Refer => 2,
            Self::Truncate => 3,
            Self::TcpPorts => 4,
            Self::DeviceCommands => 5,
            Self::Scopes => 6,
            Self::PathnameSockets => 9,
        }
    }
}

/// What is in force, for the enforcement report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an unread report hides a sandbox weaker than the one requested"]
pub struct LandlockReport {
    /// What the kernel has.
    pub abi: i32,
    /// How much of the policy that is.
    pub enforcement: Enforcement,
    /// What the policy would restrict and this kernel cannot.
    pub missing: Vec<MissingRight>,
}

impl LandlockReport {
    /// What a policy comes to where the kernel has this ABI, when it is enforced at all.
    pub fn at(abi: i32, policy: &PathPolicy) -> Self {
        Self::of(abi, missing(policy, abi))
    }

    pub(super) fn of(abi: i32, missing: Vec<MissingRight>) -> Self {
        Self {
            abi,
            enforcement: if missing.is_empty() {
                Enforcement::Full
            } else {
                Enforcement::Partial
            },
            missing,
        }
    }
}
