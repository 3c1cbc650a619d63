//! [`Worked`]: a connection that is worked by whoever waits for an answer on it, and by a task of
//! its own while nobody does.
//!
//! With a task alone, each request would be handed to it and each answer back, and the threads of
//! the program would be woken for that. The task hears when the other end closes, and carries what
//! outlasts a request: streams, and connections that become something else than HTTP.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{Owned, eager::Eager};

type Connection = dyn Future<Output = ()> + Send;

/// One connection.
pub(super) struct Worked {
    state: Mutex<State>,
}

struct State {
    connection: Owned<Connection>,
    /// Whoever waits works it, and its task does not.
    is_lent: bool,
    task: Waker,
}

/// The right to work a connection. Dropped, the connection's task goes on.
pub(super) struct Loan {
    worked: Arc<Worked>,
}

impl Worked {
    /// Takes a connection, which ends when its other end closes it or when nobody can use it.
    pub(super) fn begin(connection: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let worked = Arc::new(Self {
            state: Mutex::new(State {
                connection: Owned::new(Box::pin(connection)),
                is_lent: false,
                task: Waker::noop().clone(),
            }),
        });
        let carried = Arc::clone(&worked);
        tokio::spawn(poll_fn(move |context| carried.lock().carry(context)));
        worked
    }

    /// Lends it to whoever is about to send a request.
    pub(super) fn lend(self: &Arc<Self>) -> Loan {
        self.lock().is_lent = true;
        Loan {
            worked: Arc::clone(self),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What its task does when it is woken.
    fn carry(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.task.clone_from(context.waker());
        match self.is_lent {
            true => Poll::Pending,
            false => self.poll(context),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.connection.poll(context).unwrap_or(Poll::Ready(()))
    }
}

impl Loan {
    /// Waits for something that happens on the connection, and works it meanwhile.
    pub(super) async fn wait_for<T>(&self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        let work = poll_fn(|context| {
            // When it has ended, whatever is awaited hears of it.
            let _ = self.worked.lock().poll(context);
            awaited.as_mut().poll(context)
        });
        Eager::new(work).await
    }

    /// Gives it back in good order: its task is woken only when something happens on it.
    pub(super) fn give_back(self) {
        let mut state = self.worked.lock();
        let task = state.task.clone();
        if state.poll(&mut Context::from_waker(&task)).is_pending() {
            state.is_lent = false;
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.worked.lock();
        if std::mem::take(&mut state.is_lent) {
            state.task.wake_by_ref();
        }
    }
}

impl std::fmt::Debug for Worked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Worked").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::{sync::mpsc, task::yield_now};

    use super::*;

    /// A connection that takes numbers until nobody has any, and counts how many it took.
    fn counting() -> (Arc<Worked>, mpsc::UnboundedSender<()>, Arc<AtomicUsize>) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let worked = Worked::begin(async move {
            while receiver.recv().await.is_some() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        (worked, sender, taken)
    }

    #[tokio::test]
    async fn whoever_waits_works_it_and_its_task_goes_on() {
        let (worked, sender, taken) = counting();
        let loan = worked.lend();
        sender.send(()).unwrap();
        yield_now().await;
        assert_eq!(taken.load(Ordering::SeqCst), 0, "its task leaves it alone");
        loan.wait_for(poll_fn(|_| match taken.load(Ordering::SeqCst) {
            1 => Poll::Ready(()),
            _ => Poll::Pending,
        }))
        .await;
        loan.give_back();
        sender.send(()).unwrap();
        yield_now().await;
        assert_eq!(taken.load(Ordering::SeqCst), 2);
        let loan = worked.lend();
        sender.send(()).unwrap();
        drop(loan);
        yield_now().await;
        assert_eq!(taken.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn its_task_ends_with_it() {
        for is_lent in [false, true] {
            let (worked, sender, _) = counting();
            yield_now().await;
            assert_eq!(Arc::strong_count(&worked), 2);
            let loan = is_lent.then(|| worked.lend());
            drop(sender);
            match loan {
                Some(loan) => loan.give_back(),
                None => yield_now().await,
            }
            yield_now().await;
            assert_eq!(Arc::strong_count(&worked), 1);
        }
    }
}
