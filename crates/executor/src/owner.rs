//! Who the files belong to that we make for an agent.

use std::os::fd::AsFd;

use rustix::{
    fs::{Gid, Uid},
    io::Errno,
};

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
    /// Hands an open file or directory over. Comes before setting a mode, because it takes
    /// bits away.
    pub(crate) fn give(self, file: impl AsFd) -> Result<(), Errno> {
        match self {
            Self::Ourselves => Ok(()),
            Self::User { uid, gid } => {
                rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
            }
        }
    }
}
