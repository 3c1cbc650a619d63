//! A translation of file owners, held as a user namespace.
//!
//! The kernel takes the translation of a mount from a user namespace. One is made for the
//! purpose, with a process in it that does nothing and is gone before we return; the descriptor
//! keeps the namespace.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};

use crate::{
    policy::{Identity, Ownership},
    sys::{self, Side},
};

/// The translations that one sandbox needs. Each costs a process, and most entries share one.
#[derive(Debug)]
pub(crate) struct OwnerMaps {
    identity: Identity,
    /// As many as there are owners of what the policy lists.
    made: Vec<(Ownership, Option<OwnerMap>)>,
}

impl OwnerMaps {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            made: Vec::new(),
        }
    }

    /// The translation that `ownership` asks for; `None` when there is nothing to translate.
    pub(crate) fn get(&mut self, ownership: Ownership) -> io::Result<Option<&OwnerMap>> {
        let found = self.made.iter().position(|(made, _)| *made == ownership);
        let index = match found {
            Some(index) => index,
            None => {
                let map = OwnerMap::new(ownership, self.identity)?;
                self.made.push((ownership, map));
                self.made.len() - 1
            }
        };
        Ok(self.made.get(index).and_then(|(_, map)| map.as_ref()))
    }
}

/// Files of one user and group, shown as those of another.
#[derive(Debug)]
pub(crate) struct OwnerMap(OwnedFd);

impl OwnerMap {
    fn new(ownership: Ownership, identity: Identity) -> io::Result<Option<Self>> {
        let Ownership::Mapped { uid, gid } = ownership else {
            return Ok(None);
        };
        if (uid, gid) == (identity.uid_outside, identity.gid_outside) {
            return Ok(None);
        }
        let (held, hold) = pipe_with(PipeFlags::CLOEXEC)?;
        match sys::clone_with(libc::CLONE_NEWUSER as u64)? {
            Side::Child => {
                drop(hold);
                // Reaches its end when the parent lets go, or is killed.
                let _ = File::from(held).read(&mut [0]);
                std::process::exit(0)
            }
            Side::Parent { pid, pidfd } => {
                drop(held);
                let map = |file: &str, from: u32, to: u32| {
                    std::fs::write(format!("/proc/{pid}/{file}"), format!("{from} {to} 1\n"))
                };
                let namespace = map("uid_map", uid, identity.uid_outside)
                    .and_then(|()| map("gid_map", gid, identity.gid_outside))
                    .and_then(|()| File::open(format!("/proc/{pid}/ns/user")));
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                drop(hold);
                Ok(Some(Self(namespace?.into())))
            }
        }
    }

    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
