//! The spawners of a runtime: which one takes an order, and when there is another.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What a pool holds.
pub(super) trait Member {
    /// Whether it can still be used.
    fn is_alive(&self) -> bool;

    /// Whether it has done an order.
    fn has_worked(&self) -> bool;
}

/// Members that one holder at a time has. There are no more than so many of them at once.
#[derive(Debug)]
pub(super) struct Pool<T> {
    most: usize,
    state: Mutex<State<T>>,
    /// Notified when a member is free, or one fewer exists.
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    demand: Demand,
    /// The one that was used last is used first: its memory is in the caches.
    idle: Vec<T>,
    /// Idle ones, those that a holder has, and those that are being started.
    count: usize,
    /// How often a member was returned: an order that waits sees by it that others are served.
    served: u64,
}

/// How many orders there were, as far as that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// A caller with a single order is faster without a member.
    None,
    One,
    Many,
}

impl<T: Member> Pool<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::new(State {
                demand: Demand::None,
                idle: Vec::new(),
                count: 0,
                served: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Has a member wait for orders from now on.
    pub(super) fn stand_by(&self, begin: impl FnOnce() -> Option<T>) {
        let mut state = self.lock();
        state.demand = Demand::Many;
        if state.count == 0 {
            self.add(state, begin);
        }
    }

    /// Takes a member for one order: an idle one, else a new one while there are fewer than `most`,
    /// else the first that becomes free. None when the order is better done without, and when all
    /// members are busy for longer than `patience` with one order.
    pub(super) fn take(&self, patience: Duration, begin: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        let mut deadline = Instant::now() + patience;
        let mut served = state.served;
        match state.demand {
            Demand::None => {
                state.demand = Demand::One;
                return None;
            }
            Demand::One => {
                state.demand = Demand::Many;
                if state.count == 0 {
                    // For the orders that follow. This one would wait for its start.
                    self.add(state, begin);
                }
                return None;
            }
            Demand::Many => {}
        }
        loop {
            // Those that have ended are dropped when the lock is free: that waits for the kernel.
            let ended = state.remove_ended();
            if let Some(member) = state.idle.pop() {
                drop(state);
                drop(ended);
                return Some(member);
            }
            if state.count < self.most {
                state.count += 1;
                drop(state);
                drop(ended);
                return begin().or_else(|| {
                    self.give_up();
                    None
                });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.served != served {
                served = state.served;
                deadline = Instant::now() + patience;
            }
        }
    }

    /// Returns a member that has done its order.
    pub(super) fn give_back(&self, member: T) {
        let mut state = self.lock();
        state.idle.push(member);
        state.served += 1;
        drop(state);
        self.changed.notify_one();
    }

    /// Says that a member that was taken does not come back.
    pub(super) fn give_up(&self) {
        self.lock().count -= 1;
        self.changed.notify_one();
    }

    /// Starts a member in the place of idle ones that have ended, when none is left. One that never
    /// did an order is not replaced: its successor could end as soon, for ever. The next order tries.
    pub(super) fn replace_ended(&self, begin: impl FnOnce() -> Option<T>) {
        let mut state = self.lock();
        let ended = state.remove_ended();
        if state.count == 0 && ended.iter().any(Member::has_worked) {
            self.add(state, begin);
        }
    }

    /// Starts a member that is idle at first.
    fn add(&self, mut state: MutexGuard<'_, State<T>>, begin: impl FnOnce() -> Option<T>) {
        state.count += 1;
        drop(state);
        match begin() {
            Some(member) => self.give_back(member),
            None => self.give_up(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Each holder of the lock leaves the state consistent at every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Member> State<T> {
    fn remove_ended(&mut self) -> Vec<T> {
        let ended: Vec<T> = self
            .idle
            .extract_if(.., |member| !member.is_alive())
            .collect();
        self.count -= ended.len();
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc, Barrier,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
        thread,
    };

    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(60);

    #[derive(Debug)]
    struct Numbered {
        number: usize,
        has_worked: bool,
        has_ended: Arc<AtomicBool>,
    }

    impl Member for Numbered {
        fn has_worked(&self) -> bool {
            self.has_worked
        }

        fn is_alive(&self) -> bool {
            !self.has_ended.load(Ordering::Relaxed)
        }
    }

    /// Makes members that are numbered from 1 on.
    #[derive(Default)]
    struct Maker {
        made: AtomicUsize,
    }

    impl Maker {
        fn make(&self) -> Option<Numbered> {
            Some(Numbered {
                number: self.made.fetch_add(1, Ordering::Relaxed) + 1,
                has_worked: true,
                has_ended: Arc::default(),
            })
        }

        fn made(&self) -> usize {
            self.made.load(Ordering::Relaxed)
        }
    }

    fn taken(pool: &Pool<Numbered>, maker: &Maker, patience: Duration) -> Option<Numbered> {
        pool.take(patience, || maker.make())
    }

    #[test]
    fn the_third_order_is_the_first_that_a_member_takes() {
        let (pool, maker) = (Pool::new(1), Maker::default());
        let numbers: Vec<_> = (0..4)
            .map(|_| {
                let member = taken(&pool, &maker, LONG)?;
                let number = member.number;
                pool.give_back(member);
                Some(number)
            })
            .collect();
        assert_eq!(numbers, [None, None, Some(1), Some(1)]);
    }

    #[test]
    fn an_order_that_finds_all_busy_starts_another_member_up_to_the_most() {
        let (pool, maker) = (Pool::new(3), Maker::default());
        pool.stand_by(|| maker.make());
        let held: Vec<_> = (0..3)
            .map(|_| taken(&pool, &maker, LONG).unwrap())
            .collect();
        let numbers: Vec<_> = held.iter().map(|member| member.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(taken(&pool, &maker, Duration::ZERO).is_none());
        for member in held {
            pool.give_back(member);
        }
        // The one that was used last comes first, and no more are made.
        assert_eq!(taken(&pool, &maker, LONG).unwrap().number, 3);
        assert_eq!(maker.made(), 3);
    }

    #[test]
    fn an_order_waits_for_a_busy_member_and_gets_it() {
        let (pool, maker) = (Pool::new(1), Maker::default());
        pool.stand_by(|| maker.make());
        let first = taken(&pool, &maker, LONG).unwrap();
        let begun = Barrier::new(2);
        let second = thread::scope(|threads| {
            let waiting = threads.spawn(|| {
                begun.wait();
                taken(&pool, &maker, LONG)
            });
            begun.wait();
            pool.give_back(first);
            waiting.join().unwrap()
        });
        assert_eq!(second.unwrap().number, 1);
        assert_eq!(maker.made(), 1);
    }

    #[test]
    fn a_member_that_has_ended_is_never_handed_out() {
        let (pool, maker) = (Pool::new(2), Maker::default());
        pool.stand_by(|| maker.make());
        let held: Vec<_> = (0..2)
            .map(|_| taken(&pool, &maker, LONG).unwrap())
            .collect();
        for member in held {
            member.has_ended.store(true, Ordering::Relaxed);
            pool.give_back(member);
        }
        assert_eq!(taken(&pool, &maker, LONG).unwrap().number, 3);
    }

    #[test]
    fn a_member_that_has_ended_is_replaced_once_and_only_when_none_is_left() {
        let (pool, maker) = (Pool::new(2), Maker::default());
        pool.stand_by(|| maker.make());
        pool.replace_ended(|| maker.make());
        assert_eq!(maker.made(), 1, "none has ended");
        let held: Vec<_> = (0..2)
            .map(|_| taken(&pool, &maker, LONG).unwrap())
            .collect();
        let ends: Vec<_> = held
            .iter()
            .map(|member| Arc::clone(&member.has_ended))
            .collect();
        for member in held {
            pool.give_back(member);
        }
        ends[0].store(true, Ordering::Relaxed);
        pool.replace_ended(|| maker.make());
        assert_eq!(maker.made(), 2, "one is left");
        ends[1].store(true, Ordering::Relaxed);
        pool.replace_ended(|| maker.make());
        assert_eq!(maker.made(), 3);
        assert_eq!(taken(&pool, &maker, LONG).unwrap().number, 3);
    }

    #[test]
    fn a_member_that_ends_before_it_has_done_an_order_is_not_replaced() {
        let (pool, maker) = (Pool::new(1), Maker::default());
        let idler = Numbered {
            has_worked: false,
            has_ended: Arc::new(AtomicBool::new(true)),
            ..maker.make().unwrap()
        };
        pool.stand_by(|| Some(idler));
        pool.replace_ended(|| maker.make());
        assert_eq!(maker.made(), 1);
        assert_eq!(taken(&pool, &maker, LONG).unwrap().number, 2);
    }

    #[test]
    fn a_member_that_cannot_be_started_or_does_not_come_back_leaves_its_place_to_another() {
        let (pool, maker) = (Pool::new(1), Maker::default());
        pool.stand_by(|| None);
        assert!(pool.take(LONG, || None).is_none());
        drop(taken(&pool, &maker, LONG).unwrap());
        pool.give_up();
        assert_eq!(taken(&pool, &maker, LONG).unwrap().number, 2);
    }
}
