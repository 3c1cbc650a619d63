//! What one owner may have of what all share: open requests, bytes of bodies, actions in a minute.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use zareba_session::Owner;
use zareba_wire::serving::{Limiter, Rate};

use crate::{error::ApiError, settings::Limits};
use zareba_api::ErrorCode;

/// One owner's part of the connections: whoever has so many streams leaves room for three others.
const STREAMS_PART: usize = 4;
/// One owner's part of the bytes of large bodies.
const BODIES_PART: usize = 2;
/// How often a large body is in memory at once, at most: as it came, as a document, as an action, as
/// its record in the log, and on its way into the sandbox. Measured: 4.8 times.
const BODY_COPIES: usize = 5;
/// A body up to here is not counted: the actions that may wait in a session bound those.
const SMALL_BODY_BYTES: usize = 16 * 1024;
/// When to try again for what others hold.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What all owners share.
#[derive(Debug)]
pub(crate) struct Usage {
    streams: Pool,
    bodies: Pool,
    actions: Limiter<Owner>,
}

/// Somebody has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted {
    used_by: Users,
    message: String,
    pub(crate) wait: Duration,
}

/// Whose limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    All,
    Owner,
}

impl Usage {
    pub(crate) fn new(limits: &Limits) -> Self {
        let bodies = limits.large_bodies_bytes;
        Self {
            // How many there are in all is for the accept loop to bound.
            streams: Pool::new(usize::MAX, (limits.connections / STREAMS_PART).max(1)),
            bodies: Pool::new(
                bodies,
                (bodies / BODIES_PART).max(limits.action_bytes * BODY_COPIES),
            ),
            actions: Limiter::new(),
        }
    }

    /// A place for a request that may stay open: a stream, a wait, a transfer.
    pub(crate) fn stream(&self, owner: &Owner) -> Result<Part, Exhausted> {
        let taken = self.streams.take(owner, 1);
        taken.map_err(|used_by| Exhausted {
            used_by,
            message: format!(
                "`{}` has {} open requests, which is the limit",
                owner.0, self.streams.each
            ),
            wait: RETRY_AFTER,
        })
    }

    /// Room for a body of so many bytes, to be kept until nothing of it is needed any more; a
    /// small body needs none.
    pub(crate) fn body(&self, owner: &Owner, bytes: usize) -> Result<Option<Part>, Exhausted> {
        if bytes <= SMALL_BODY_BYTES {
            return Ok(None);
        }
        let taken = self.bodies.take(owner, bytes.saturating_mul(BODY_COPIES));
        taken.map(Some).map_err(|used_by| Exhausted {
            used_by,
            message: format!(
                "`{}` has too many large actions under way: {} bytes is the limit",
                owner.0,
                self.bodies.each / BODY_COPIES
            ),
            wait: RETRY_AFTER,
        })
    }

    /// Counts an action. Keys of one owner count together, so that more keys give no more actions.
    pub(crate) fn action(&self, owner: &Owner, per_minute: Option<u32>) -> Result<(), Exhausted> {
        let Some(limit) = per_minute else {
            return Ok(());
        };
        let counted = self.actions.count(owner.clone(), Rate::per_minute(limit));
        counted.map_err(|wait| Exhausted {
            used_by: Users::Owner,
            message: format!("this key allows {limit} actions in a minute"),
            wait,
        })
    }
}

impl From<Exhausted> for ApiError {
    fn from(exhausted: Exhausted) -> Self {
        match exhausted.used_by {
            Users::All => Self::overloaded(),
            Users::Owner => {
                Self::new(ErrorCode::TooManyRequests, exhausted.message).retry_after(exhausted.wait)
            }
        }
    }
}

/// Something of which there is so much, and for one owner so much at most.
#[derive(Debug)]
struct Pool {
    all: usize,
    each: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only owners who have something now.
    by_owner: HashMap<Owner, usize>,
}

/// What an owner has of it, given back on drop.
#[derive(Debug)]
pub(crate) struct Part {
    taken: Arc<Mutex<Taken>>,
    owner: Owner,
    units: usize,
}

impl Pool {
    fn new(all: usize, each: usize) -> Self {
        let taken = Arc::default();
        Self { all, each, taken }
    }

    fn take(&self, owner: &Owner, units: usize) -> Result<Part, Users> {
        let mut taken = locked(&self.taken);
        let theirs = taken.by_owner.get(owner).copied().unwrap_or(0);
        if self.each.saturating_sub(theirs) < units {
            return Err(Users::Owner);
        }
        if self.all.saturating_sub(taken.all) < units {
            return Err(Users::All);
        }
        taken.all += units;
        taken.by_owner.insert(owner.clone(), theirs + units);
        Ok(Part {
            taken: Arc::clone(&self.taken),
            owner: owner.clone(),
            units,
        })
    }
}

impl Part {
    /// Gives back what turned out not to be needed for a body of so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let needed = bytes.saturating_mul(BODY_COPIES);
        self.give_back(self.units.saturating_sub(needed));
    }

    fn give_back(&mut self, units: usize) {
        self.units -= units;
        let mut taken = locked(&self.taken);
        taken.all -= units;
        if let Some(theirs) = taken.by_owner.get_mut(&self.owner) {
            *theirs -= units;
            if *theirs == 0 {
                taken.by_owner.remove(&self.owner);
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.give_back(self.units);
    }
}

/// The counts are right even if a holder panicked: nothing in between can fail.
fn locked(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner(name.to_owned())
    }

    #[test]
    fn one_owner_leaves_room_for_others_hs_14() {
        let pool = Pool::new(3, 2);
        let (ann, ben) = (owner("ann"), owner("ben"));
        let first = pool.take(&ann, 1).unwrap();
        let second = pool.take(&ann, 1).unwrap();
        assert_eq!(pool.take(&ann, 1).unwrap_err(), Users::Owner);
        let third = pool.take(&ben, 1).unwrap();
        assert_eq!(pool.take(&ben, 1).unwrap_err(), Users::All);
        drop(first);
        assert!(pool.take(&ben, 1).is_ok());
        drop((second, third));
        let taken = locked(&pool.taken);
        assert_eq!((taken.all, taken.by_owner.len()), (0, 0));
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let pool = Pool::new(100 * BODY_COPIES, 100 * BODY_COPIES);
        let mut part = pool.take(&owner("ann"), 100 * BODY_COPIES).unwrap();
        assert_eq!(pool.take(&owner("ben"), 1).unwrap_err(), Users::All);
        part.shrink_to(40);
        part.shrink_to(50);
        let rest = pool.take(&owner("ann"), 60 * BODY_COPIES).unwrap();
        drop((part, rest));
        assert_eq!(locked(&pool.taken).all, 0);
    }

    /// The budget is memory, and a body is in it several times.
    #[test]
    fn large_bodies_under_way_fit_into_their_budget_with_all_their_copies() {
        let limits = Limits::default();
        let usage = Usage::new(&limits);
        let largest = limits.action_bytes;
        let asked = (0..100).map(|number| usage.body(&owner(&number.to_string()), largest));
        let (parts, refused): (Vec<_>, Vec<_>) = asked.partition(Result::is_ok);
        let of_all = |refused: &Exhausted| refused.used_by == Users::All;
        assert!(refused.iter().flat_map(|it| it.as_ref().err()).all(of_all));
        assert_eq!(
            parts.len(),
            limits.large_bodies_bytes / (largest * BODY_COPIES)
        );
        let (usage, ann) = (Usage::new(&limits), owner("ann"));
        let one = usage.body(&ann, largest).unwrap();
        assert_eq!(usage.body(&ann, largest).unwrap_err().used_by, Users::Owner);
        drop(one);
        assert!(usage.body(&ann, largest).is_ok());
    }

    #[test]
    fn all_keys_of_an_owner_have_one_allowance_of_actions() {
        let usage = Usage::new(&Limits::default());
        assert_eq!(usage.action(&owner("ann"), Some(1)), Ok(()));
        assert!(usage.action(&owner("ann"), Some(1)).is_err());
        assert_eq!(usage.action(&owner("ben"), Some(1)), Ok(()));
        assert_eq!(usage.action(&owner("ann"), None), Ok(()));
    }
}
