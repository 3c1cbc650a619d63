//! [`Owned`]: a future whose owner lends it to the caller for each poll.
//!
//! The caller that waits for work polls it, which spares the way to another task and back. Three
//! places do that, and differ in who else may end or go on with the work: an action of a session, work
//! in a sandbox, a connection. What they have in common is here: a future that has ended, was taken
//! or panicked is not polled again.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// A future until it has ended, was taken, or panicked.
pub struct Owned<F: ?Sized> {
    future: Option<Pin<Box<F>>>,
}

impl<F: ?Sized> Owned<F> {
    /// Takes a future in.
    pub const fn new(future: Pin<Box<F>>) -> Self {
        Self {
            future: Some(future),
        }
    }

    /// Gives it away, if it is still there.
    pub fn take(&mut self) -> Option<Pin<Box<F>>> {
        self.future.take()
    }
}

impl<F: Future + ?Sized> Owned<F> {
    /// Polls it. Without a future there is no answer.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Option<Poll<F::Output>> {
        // Out of its place for the poll, so that a panic leaves nothing to poll again.
        let mut future = self.future.take()?;
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            self.future = Some(future);
        }
        Some(polled)
    }
}

impl<F: ?Sized> std::fmt::Debug for Owned<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Owned")
            .field("is_there", &self.future.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn, ready},
        panic::{AssertUnwindSafe, catch_unwind},
        task::Waker,
    };

    use super::*;

    fn poll<F: Future>(owned: &mut Owned<F>) -> Option<Poll<F::Output>> {
        owned.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_has_ended_or_was_taken_gives_no_answer() {
        let mut ended = Owned::new(Box::pin(ready(7)));
        assert_eq!(poll(&mut ended), Some(Poll::Ready(7)));
        assert_eq!(poll(&mut ended), None);
        let mut taken = Owned::new(Box::pin(pending::<()>()));
        assert_eq!(poll(&mut taken), Some(Poll::Pending));
        assert!(taken.take().is_some());
        assert_eq!(poll(&mut taken), None);
    }

    #[test]
    fn what_has_panicked_is_not_polled_again() {
        let mut polls = 0;
        let mut owned = Owned::new(Box::pin(poll_fn(|_| -> Poll<()> {
            polls += 1;
            panic!("for this test");
        })));
        catch_unwind(AssertUnwindSafe(|| poll(&mut owned))).unwrap_err();
        assert_eq!(poll(&mut owned), None);
        drop(owned);
        assert_eq!(polls, 1);
    }
}
