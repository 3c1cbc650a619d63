//! A translation of file owners, held as a user namespace.
//!
//! The kernel takes the translation of a mount from a user namespace. One is made for the
//! purpose, with a process in it that does nothing and is gone before we return; the descriptor
//! keeps the namespace.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use crate::{
    policy::{Identity, Ownership},
    sys::Idler,
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
        let idler = Idler::in_user_namespace()?;
        let pid = idler.pid;
        let map = |file: &str, from: u32, to: u32| {
            std::fs::write(format!("/proc/{pid}/{file}"), format!("{from} {to} 1\n"))
        };
        map("uid_map", uid, identity.uid_outside)?;
        map("gid_map", gid, identity.gid_outside)?;
        let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
        Ok(Some(Self(namespace.into())))
    }

    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
