//! Taking every capability away, and making sure that none can come back.
//!
//! A process has five sets of them: what it may do now, what it may turn on, what survives an
//! exec in two different ways, and the bound of what an exec may ever give. All five are emptied,
//! the special powers of user 0 are switched off and locked, and `no_new_privs` keeps programs
//! with a set-user-id bit or file capabilities from giving anything. Then the kernel is asked
//! what is left (NS-8): here for the sets that it tells of at once, and from outside, where one file
//! tells of all five, by [`EnforcementReport::read`](crate::EnforcementReport::read). To ask for the
//! other two here would take a call for each capability that there is.

use std::io;

use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

/// One more than the highest number that a capability can have.
const CAPABILITY_BITS: u32 = u64::BITS;

/// User 0 is an ordinary user, also after changing identity, and none of that can be undone.
const SECURE_BITS: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT
    .union(CapabilitiesSecureBits::NO_ROOT_LOCKED)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED)
    .union(CapabilitiesSecureBits::KEEP_CAPS_LOCKED)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// Which of a process's sets of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapabilityKind {
    /// What it may do now.
    Effective,
    /// What it may turn on.
    Permitted,
    /// What an exec of a marked program keeps.
    Inheritable,
}

/// Why capabilities are still there.
#[derive(Debug, thiserror::Error)]
pub enum CapabilityError {
    /// The bound could not be lowered.
    #[error("cannot take capability {capability} out of the bounding set")]
    LowerBound {
        /// Its number.
        capability: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The powers of user 0 could not be switched off.
    #[error("cannot lock the secure bits")]
    LockSecureBits {
        /// What the system said.
        source: io::Error,
    },
    /// The ambient set could not be emptied.
    #[error("cannot empty the ambient set")]
    ClearAmbient {
        /// What the system said.
        source: io::Error,
    },
    /// The other three could not be emptied.
    #[error("cannot empty the effective, permitted and inheritable sets")]
    ClearSets {
        /// What the system said.
        source: io::Error,
    },
    /// `no_new_privs` could not be set.
    #[error("cannot set no_new_privs")]
    NoNewPrivileges {
        /// What the system said.
        source: io::Error,
    },
    /// What is left could not be asked.
    #[error("cannot read the capabilities back")]
    ReadBack {
        /// What the system said.
        source: io::Error,
    },
    /// Every call succeeded, and something is left all the same.
    #[error("the {kind:?} set still holds {remaining:#x}")]
    Remaining {
        /// In which set.
        kind: CapabilityKind,
        /// One bit per capability.
        remaining: u64,
    },
    /// Every call succeeded, and privileges could still be gained.
    #[error("the kernel does not report no_new_privs and locked secure bits")]
    NotLocked,
}

impl CapabilityError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::LowerBound { .. } | Self::LockSecureBits { .. } => {
                "this needs CAP_SETPCAP, which the first process of a user namespace has: let the launcher make one"
            }
            Self::ClearAmbient { .. }
            | Self::ClearSets { .. }
            | Self::NoNewPrivileges { .. }
            | Self::ReadBack { .. } => {
                "use Linux 4.3 or later; in a container, its own filter must allow `prctl`, `capget` and `capset`"
            }
            Self::Remaining { .. } | Self::NotLocked => {
                "do not trust this kernel with confinement: it reports other rights than it was told to leave"
            }
        }
    }

    /// The error number of the system, when the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::LowerBound { source, .. }
            | Self::LockSecureBits { source }
            | Self::ClearAmbient { source }
            | Self::ClearSets { source }
            | Self::NoNewPrivileges { source }
            | Self::ReadBack { source } => source.raw_os_error(),
            Self::Remaining { .. } | Self::NotLocked => None,
        }
    }
}

/// Empties all five sets of the calling thread, for good. Whoever needs privileges needs them
/// before this.
///
/// # Errors
/// When a set cannot be emptied, or the kernel reports afterwards that one of those that it tells of at
/// once is not empty.
pub fn drop_all_capabilities() -> Result<(), CapabilityError> {
    lower_bound()?;
    rustix::thread::set_capabilities_secure_bits(SECURE_BITS).map_err(|error| {
        CapabilityError::LockSecureBits {
            source: error.into(),
        }
    })?;
    rustix::thread::clear_ambient_capability_set().map_err(|error| {
        CapabilityError::ClearAmbient {
            source: error.into(),
        }
    })?;
    rustix::thread::set_capabilities(None, NO_CAPABILITIES).map_err(|error| {
        CapabilityError::ClearSets {
            source: error.into(),
        }
    })?;
    rustix::thread::set_no_new_privs(true).map_err(|error| CapabilityError::NoNewPrivileges {
        source: error.into(),
    })?;
    verify()
}

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Also removes capabilities that this version does not know: the kernel says which exist.
fn lower_bound() -> Result<(), CapabilityError> {
    for capability in 0..CAPABILITY_BITS {
        match rustix::thread::remove_capability_from_bounding_set(single(capability)) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) => break,
            // Without the right to lower it, what is not in it need not be taken out.
            Err(_) if is_bounded_already(capability) => {}
            Err(error) => {
                return Err(CapabilityError::LowerBound {
                    capability,
                    source: error.into(),
                });
            }
        }
    }
    Ok(())
}

fn is_bounded_already(capability: u32) -> bool {
    rustix::thread::capability_is_in_bounding_set(single(capability)) == Ok(false)
}

fn verify() -> Result<(), CapabilityError> {
    let read_back = |error: rustix::io::Errno| CapabilityError::ReadBack {
        source: error.into(),
    };
    let sets = rustix::thread::capabilities(None).map_err(read_back)?;
    for (kind, left) in [
        (CapabilityKind::Effective, sets.effective),
        (CapabilityKind::Permitted, sets.permitted),
        (CapabilityKind::Inheritable, sets.inheritable),
    ] {
        if !left.is_empty() {
            return Err(CapabilityError::Remaining {
                kind,
                remaining: left.bits(),
            });
        }
    }
    let is_locked = rustix::thread::capabilities_secure_bits().map_err(read_back)? == SECURE_BITS
        && rustix::thread::no_new_privs().map_err(read_back)?;
    if is_locked {
        Ok(())
    } else {
        Err(CapabilityError::NotLocked)
    }
}

fn single(capability: u32) -> CapabilitySet {
    CapabilitySet::from_bits_retain(1 << capability)
}
