//! Who the files belong to that we make for an agent.

use std::{io, os::fd::AsFd};

use rustix::fs::{Gid, Uid};

/// Who new files and directories belong to.
///
/// An executor that runs as root for another user would otherwise leave files behind that the
/// agent cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Whoever we run as.
    Ourselves,
    /// Another user, which takes root to arrange.
    User {
        /// User number.
        uid: u32,
        /// Group number.
        gid: u32,
    },
}

impl Owner {
    /// User and group, when they are not our own.
    pub fn numbers(self) -> Option<(u32, u32)> {
        match self {
            Self::Ourselves => None,
            Self::User { uid, gid } => Some((uid, gid)),
        }
    }

    /// Hands an open file or directory over.
    ///
    /// # Errors
    /// When we may not give files away.
    pub fn give(self, file: impl AsFd) -> io::Result<()> {
        match self {
            Self::Ourselves => Ok(()),
            Self::User { uid, gid } => {
                Ok(rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
            }
        }
    }
}
