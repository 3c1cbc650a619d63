//! A translation of file owners, held as a user namespace.
//!
//! The kernel takes the translation of a mount from a user namespace. Where files belong to the
//! number that the sandbox's user has inside, that is the sandbox's own namespace, as soon as there
//! is one. For all others one is made for the purpose, with a process in it that does nothing and
//! is gone before we return; the descriptor keeps the namespace.

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
    made: Vec<(Ownership, OwnerMap)>,
}

/// Whose files appear as whose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owners<'a> {
    AsTheyAre,
    /// As in the sandbox's own namespace, which is not there yet.
    OfTheSandbox,
    Mapped(&'a OwnerMap),
}

impl OwnerMaps {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            made: Vec::new(),
        }
    }

    /// The translation that `ownership` asks for.
    pub(crate) fn get(&mut self, ownership: Ownership) -> io::Result<Owners<'_>> {
        let Ownership::Mapped { uid, gid } = ownership else {
            return Ok(Owners::AsTheyAre);
        };
        let Identity {
            uid_inside,
            gid_inside,
            uid_outside,
            gid_outside,
        } = self.identity;
        if (uid, gid) == (uid_outside, gid_outside) {
            return Ok(Owners::AsTheyAre);
        }
        if (uid, gid) == (uid_inside, gid_inside) {
            return Ok(Owners::OfTheSandbox);
        }
        let found = self.made.iter().position(|(made, _)| *made == ownership);
        let index = match found {
            Some(index) => index,
            None => {
                let map = OwnerMap::new((uid, gid), self.identity)?;
                self.made.push((ownership, map));
                self.made.len() - 1
            }
        };
        let map = self.made.get(index);
        Ok(map.map_or(Owners::AsTheyAre, |(_, map)| Owners::Mapped(map)))
    }
}

/// Files of one user and group, shown as those of another.
#[derive(Debug)]
pub(crate) struct OwnerMap(OwnedFd);

impl OwnerMap {
    fn new((uid, gid): (u32, u32), identity: Identity) -> io::Result<Self> {
        let idler = Idler::in_user_namespace()?;
        let pid = idler.pid;
        let map = |file: &str, from: u32, to: u32| {
            std::fs::write(format!("/proc/{pid}/{file}"), format!("{from} {to} 1\n"))
        };
        map("uid_map", uid, identity.uid_outside)?;
        map("gid_map", gid, identity.gid_outside)?;
        let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
        Ok(Self(namespace.into()))
    }

    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
