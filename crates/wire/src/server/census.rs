//! The connections there are: how welcome each is, and which one gives way when there are too many.
//!
//! A connection costs its client nothing, so strangers could hold every place by saying nothing.
//! A connection on which no request was authenticated is therefore a *stranger*, and a stranger
//! that waits for a request gives way to a new connection once no place is left, the oldest
//! first. A client that sends its request at once is hardly ever the oldest. Connections that were
//! authenticated, and requests that are being handled, are never closed for others.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::task::AbortHandle;

use super::limits::{LIVENESS_RESERVE, ServerLimits};

/// How welcome a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Everything may be asked for.
    Full,
    /// There are too many others: only the public routes answer.
    LivenessOnly,
}

/// In the extensions of an answer: its request was authenticated, so that its connection is not
/// closed to make room for others.
#[derive(Clone, Copy, Debug)]
pub struct Recognised;

/// All connections of one server.
#[derive(Default)]
pub(super) struct Census {
    full: usize,
    liveness_only: usize,
    peers: HashMap<IpAddr, usize>,
    /// By age, the oldest first.
    connections: BTreeMap<u64, Connection>,
    next: u64,
}

struct Connection {
    peer: IpAddr,
    admission: Admission,
    standing: Arc<Standing>,
    task: Option<AbortHandle>,
}

/// Whether a connection may be closed for another one; shared by the census and the connection.
#[derive(Debug, Default)]
pub(super) struct Standing(AtomicU8);

/// A stranger that waits for a request, or has been answered and still reads or sends.
const IDLE_STRANGER: u8 = 0;
/// A request of a stranger is being handled.
const HANDLING: u8 = 1;
const RECOGNISED: u8 = 2;
const EVICTED: u8 = 3;

impl Standing {
    fn change(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// A request begins. False when the connection is being closed, so that none may.
    pub(super) fn begin_request(&self) -> bool {
        self.change(IDLE_STRANGER, HANDLING) != Err(EVICTED)
    }

    /// Its answer is known.
    pub(super) fn end_request(&self, is_recognised: bool) {
        let now = match is_recognised {
            true => RECOGNISED,
            false => IDLE_STRANGER,
        };
        // A connection that was recognised once stays so.
        let _ = self.change(HANDLING, now);
    }

    fn evict(&self) -> bool {
        self.change(IDLE_STRANGER, EVICTED).is_ok()
    }
}

/// A connection's place in the census, given back on drop.
pub(super) struct Place {
    census: Arc<Mutex<Census>>,
    number: u64,
    pub(super) peer: IpAddr,
    pub(super) admission: Admission,
    pub(super) standing: Arc<Standing>,
}

impl Place {
    /// `None` when there is none to be had. [`Census::set_task`] must be told of the task that holds
    /// it before the next one is taken.
    pub(super) fn take(
        census: &Arc<Mutex<Census>>,
        peer: IpAddr,
        limits: &ServerLimits,
    ) -> Option<Self> {
        let mut counted = locked(census);
        let admission = counted.admit(peer, limits)?;
        let standing = Arc::new(Standing::default());
        let number = counted.enter(peer, admission, Arc::clone(&standing));
        Some(Self {
            census: Arc::clone(census),
            number,
            peer,
            admission,
            standing,
        })
    }

    /// Which connection of the census this is.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.census).leave(self.number);
    }
}

impl Census {
    /// Names the task that serves a connection, which is aborted when the connection is evicted.
    pub(super) fn set_task(&mut self, number: u64, task: AbortHandle) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.task = Some(task);
        }
    }

    /// Closes the oldest idle stranger, if there is one.
    pub(super) fn evict_any(&mut self) -> bool {
        self.evict(|_| true)
    }

    fn admit(&mut self, peer: IpAddr, limits: &ServerLimits) -> Option<Admission> {
        let of_peer = self.peers.get(&peer).copied().unwrap_or(0);
        let has_room = if of_peer >= limits.peer_connections {
            self.evict(|other| other.admission == Admission::Full && other.peer == peer)
        } else {
            self.full < limits.connections || self.evict(|other| other.admission == Admission::Full)
        };
        if has_room {
            return Some(Admission::Full);
        }
        let has_reserve = self.liveness_only < LIVENESS_RESERVE
            || self.evict(|other| other.admission == Admission::LivenessOnly);
        has_reserve.then_some(Admission::LivenessOnly)
    }

    fn enter(&mut self, peer: IpAddr, admission: Admission, standing: Arc<Standing>) -> u64 {
        match admission {
            Admission::LivenessOnly => self.liveness_only += 1,
            Admission::Full => {
                self.full += 1;
                *self.peers.entry(peer).or_insert(0) += 1;
            }
        }
        let number = self.next;
        self.next += 1;
        let connection = Connection {
            peer,
            admission,
            standing,
            task: None,
        };
        self.connections.insert(number, connection);
        number
    }

    /// Does nothing for a connection that was evicted.
    fn leave(&mut self, number: u64) -> Option<Connection> {
        let connection = self.connections.remove(&number)?;
        match connection.admission {
            Admission::LivenessOnly => self.liveness_only -= 1,
            Admission::Full => {
                self.full -= 1;
                if let Some(of_peer) = self.peers.get_mut(&connection.peer) {
                    *of_peer -= 1;
                    if *of_peer == 0 {
                        self.peers.remove(&connection.peer);
                    }
                }
            }
        }
        Some(connection)
    }

    fn evict(&mut self, may_be: impl Fn(&Connection) -> bool) -> bool {
        let mut oldest = self.connections.iter();
        let evicted = oldest.find(|(_, other)| may_be(other) && other.standing.evict());
        let Some(number) = evicted.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(task) = self.leave(number).and_then(|evicted| evicted.task) {
            task.abort();
        }
        true
    }
}

/// The counts are right even if a holder panicked: nothing in between can fail.
pub(super) fn locked(census: &Mutex<Census>) -> MutexGuard<'_, Census> {
    census.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "census_tests.rs"]
mod tests;
