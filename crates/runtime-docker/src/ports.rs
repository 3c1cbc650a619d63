//! Which ports outside lead to a sandbox.
//!
//! A port that has to be known before the container is made is chosen under a lock, so that two
//! sandboxes that start at once do not choose the same one. The lock is held until the Engine has
//! the port. Somebody else may still be faster; then the Engine says so, and another is chosen.

use std::{
    fs::{self, File},
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use crate::{PortChoice, PortRequest};

/// Ports of a range that are tried before it counts as taken.
const TRIES_MAX: u32 = 256;

/// A port that will be published.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) inside: u16,
    /// None lets the Engine choose.
    pub(crate) outside: Option<u16>,
    pub(crate) variable: Option<String>,
    _lock: Option<File>,
}

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    #[error("no port from {first} to {last} is free on {address}")]
    NoneFree {
        first: u16,
        last: u16,
        address: IpAddr,
    },
    #[error("cannot lock ports in `{path}`", path = path.display())]
    Lock { path: PathBuf, source: io::Error },
}

/// Chooses ports. Locks lie in `locks`, which is made when missing.
pub(crate) fn reserve(
    requests: &[PortRequest],
    address: IpAddr,
    locks: &Path,
) -> Result<Vec<Reserved>, PortError> {
    let mut reserved = Vec::new();
    for request in requests {
        let (inside, outside, lock) = match request.choice {
            PortChoice::Any { inside } => (inside, None, None),
            PortChoice::Fixed { inside, outside } => (inside, Some(outside), None),
            PortChoice::Same { first, last } => {
                let (port, lock) = find(first, last, address, locks)?;
                (port, Some(port), Some(lock))
            }
        };
        reserved.push(Reserved {
            inside,
            outside,
            variable: request.variable.clone(),
            _lock: lock,
        });
    }
    Ok(reserved)
}

/// Whether another attempt could choose another port.
pub(crate) fn can_choose_again(requests: &[PortRequest]) -> bool {
    let is_open = |request: &PortRequest| matches!(request.choice, PortChoice::Same { .. });
    requests.iter().any(is_open)
}

fn find(first: u16, last: u16, address: IpAddr, locks: &Path) -> Result<(u16, File), PortError> {
    let failed = |source| PortError::Lock {
        path: locks.to_owned(),
        source,
    };
    fs::create_dir_all(locks).map_err(failed)?;
    let count = u32::from(last.saturating_sub(first)) + 1;
    // From anywhere, so that two who look at once rarely meet.
    let start = rand::random::<u32>() % count;
    let offsets = (0..count.min(TRIES_MAX)).map(|step| (start + step) % count);
    for port in offsets.filter_map(|offset| first.checked_add(u16::try_from(offset).ok()?)) {
        let path = locks.join(format!("port_{port}.lock"));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let is_ours = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_ours && TcpListener::bind(SocketAddr::new(address, port)).is_ok() {
            return Ok((port, lock));
        }
    }
    Err(PortError::NoneFree {
        first,
        last,
        address,
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, net::Ipv4Addr, thread};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn same(first: u16, last: u16) -> PortRequest {
        PortRequest {
            choice: PortChoice::Same { first, last },
            variable: None,
        }
    }

    #[test]
    fn those_who_look_at_once_never_get_the_same_port() {
        let locks = tempfile::tempdir().unwrap();
        let reserve = || reserve(&[same(42_000, 42_031)], HERE, locks.path()).unwrap();
        let reserved: Vec<Reserved> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(reserve)).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.flatten().collect()
        });
        let ports: HashSet<u16> = reserved.iter().map(|port| port.inside).collect();
        assert_eq!(ports.len(), 8);
        assert!(
            reserved
                .iter()
                .all(|port| port.outside == Some(port.inside))
        );
    }

    #[test]
    fn a_taken_port_is_not_chosen_and_a_full_range_is_told() {
        let locks = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind((HERE, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = reserve(&[same(port, port)], HERE, locks.path()).unwrap_err();
        assert!(matches!(error, PortError::NoneFree { .. }), "{error}");
        drop(taken);
        let reserved = reserve(&[same(port, port)], HERE, locks.path()).unwrap();
        let locked = reserve(&[same(port, port)], HERE, locks.path());
        assert!(matches!(locked, Err(PortError::NoneFree { .. })));
        drop(reserved);
        reserve(&[same(port, port)], HERE, locks.path()).unwrap();
    }
}
