//! [`Inside`]: the work that is under way in a sandbox.
//!
//! Whoever waits for work polls it, which spares the way to another task and back. That it can be
//! stopped without them is why it is kept here, and only lent to them for each poll.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use zareba_wire::Owned;

use super::Closed;

/// All work of one sandbox: as much as there are callers.
#[derive(Debug, Default)]
pub(super) struct Inside {
    works: Mutex<Works>,
}

#[derive(Default)]
struct Works {
    is_closed: bool,
    next: u64,
    by_number: HashMap<u64, Arc<dyn Stop>>,
}

/// Work that can be stopped by somebody else than whoever polls it.
trait Stop: Send + Sync {
    fn stop(&self);
}

/// A piece of work.
struct Work<F>(Mutex<Slot<F>>);

struct Slot<F> {
    work: Owned<F>,
    /// Who waits.
    waker: Option<Waker>,
}

/// Waits for a piece of work, and does it.
pub(super) struct Working<'a, F> {
    inside: &'a Inside,
    number: u64,
    work: Arc<Work<F>>,
}

impl Inside {
    /// Takes work in.
    pub(super) fn enter<F>(&self, work: F) -> Result<Working<'_, F>, Closed>
    where
        F: Future + Send + 'static,
    {
        let slot = Slot {
            work: Owned::new(Box::pin(work)),
            waker: None,
        };
        let work = Arc::new(Work(Mutex::new(slot)));
        let mut works = self.works();
        if works.is_closed {
            return Err(Closed);
        }
        let number = works.next;
        works.next += 1;
        works.by_number.insert(number, Arc::clone(&work) as _);
        drop(works);
        Ok(Working {
            inside: self,
            number,
            work,
        })
    }

    /// Stops all work, and takes in no more.
    pub(super) fn empty(&self) {
        let mut works = self.works();
        works.is_closed = true;
        let all = std::mem::take(&mut works.by_number);
        // What is dropped with the work may look in here.
        drop(works);
        for work in all.into_values() {
            work.stop();
        }
    }

    fn works(&self) -> MutexGuard<'_, Works> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Work<F> {
    fn slot(&self) -> MutexGuard<'_, Slot<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future> Work<F> {
    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<F::Output, Closed>> {
        let mut slot = self.slot();
        match slot.work.poll(context) {
            None => Poll::Ready(Err(Closed)),
            Some(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Some(Poll::Pending) => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<F: Send> Stop for Work<F> {
    /// When it is being polled at this moment, waits for that.
    fn stop(&self) {
        let mut slot = self.slot();
        let (work, waker) = (slot.work.take(), slot.waker.take());
        drop(slot);
        drop(work);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<F: Future> Future for Working<'_, F> {
    type Output = Result<F::Output, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.poll(context)
    }
}

impl<F> Drop for Working<'_, F> {
    fn drop(&mut self) {
        self.inside.works().by_number.remove(&self.number);
    }
}

impl std::fmt::Debug for Works {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Works")
            .field("is_closed", &self.is_closed)
            .field("under_way", &self.by_number.len())
            .finish_non_exhaustive()
    }
}
