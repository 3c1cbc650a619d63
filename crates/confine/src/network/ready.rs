//! Networks that are made ahead of the sandboxes that they are for.
//!
//! A network with nothing in it but a loopback interface is the same for every sandbox, and to make
//! one takes the kernel longer than all other namespaces together. So whoever starts many sandboxes
//! makes some of them while there is nothing else to do. Each is for one sandbox, and for no other
//! after it. It belongs to the machine's root and not to the sandbox's user, who could not change it
//! even with all capabilities; and only root can make one this way.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::setup::bring_up_loopback;
use crate::sys;

/// For the next launch.
static KEPT: Mutex<Option<ReadyNetwork>> = Mutex::new(None);

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum MakeNetworkError {
    /// Nothing has changed.
    #[error("cannot make a network ahead")]
    Refused(#[source] io::Error),
    /// Whoever has tried is in another network than before.
    #[error("cannot return to the network that this process was in")]
    Astray(#[source] io::Error),
}

/// A network that no process is in.
#[derive(Debug)]
pub struct ReadyNetwork(OwnedFd);

impl ReadyNetwork {
    /// Makes one. The calling process must have a single thread.
    ///
    /// # Errors
    /// When the caller is not the machine's root, or the kernel has no more of them to give; or when the
    /// caller is not where it was any more, and should end.
    pub fn make() -> Result<Self, MakeNetworkError> {
        let home = open_own_network().map_err(MakeNetworkError::Refused)?;
        // Who may leave a network need not be allowed to come back: it may belong to somebody else.
        move_into(&home).map_err(MakeNetworkError::Refused)?;
        sys::unshare_network().map_err(MakeNetworkError::Refused)?;
        let away = Away { home };
        let made = bring_up_loopback()
            .map_err(|failure| io::Error::from_raw_os_error(failure.errno))
            .and_then(|()| open_own_network());
        away.return_home().map_err(MakeNetworkError::Astray)?;
        made.map(Self).map_err(MakeNetworkError::Refused)
    }

    /// Makes it that of the next sandbox without a way out that this process launches.
    pub fn keep(self) {
        *kept() = Some(self);
    }

    /// The one that was kept, for one launch.
    pub(crate) fn take() -> Option<Self> {
        kept().take()
    }

    /// Goes there, so that a new process is there from its beginning.
    pub(crate) fn enter(self) -> io::Result<Away> {
        let home = open_own_network()?;
        move_into(&self.0)?;
        Ok(Away { home })
    }
}

fn kept() -> MutexGuard<'static, Option<ReadyNetwork>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of its descriptor, if there is one.
pub(crate) fn kept_descriptor() -> Option<i32> {
    kept().as_ref().map(|network| network.0.as_raw_fd())
}

/// A process that is in another network than its own.
#[must_use = "it must return home, except in a copy that stays"]
pub(crate) struct Away {
    home: OwnedFd,
}

impl Away {
    pub(crate) fn return_home(self) -> io::Result<()> {
        move_into(&self.home)
    }
}

fn open_own_network() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(CWD, "/proc/self/ns/net", flags, Mode::empty())?)
}

fn move_into(network: &OwnedFd) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(network.as_fd(), kind)?)
}
