//! [`Eager`]: a future that goes on at once when it has woken itself.
//!
//! A task that is woken while it runs goes to the end of its thread's queue, and another thread is
//! woken to take it from there. Where both ends of a channel are in one task, as with a connection
//! and what is said on it, that would happen with every message, for nothing.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// How often it goes on at once before others on its thread have their turn.
const ROUNDS_MAX: usize = 8;

/// Nobody polls it, and its task need not.
const QUIET: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It was woken.
const RUNG: u8 = 2;

/// A future that goes on at once when it has woken itself.
pub(crate) struct Eager<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What the future wakes.
struct Bell {
    state: AtomicU8,
    task: Mutex<Waker>,
}

impl<F> Eager<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell {
            state: AtomicU8::new(QUIET),
            task: Mutex::new(Waker::noop().clone()),
        });
        Self {
            future: Box::pin(future),
            waker: Arc::clone(&bell).into(),
            bell,
        }
    }
}

impl<F: Future> Future for Eager<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        this.bell.belong_to(context.waker());
        for _ in 0..ROUNDS_MAX {
            this.bell.state.store(POLLED, Ordering::SeqCst);
            let mut own = Context::from_waker(&this.waker);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut own) {
                return Poll::Ready(output);
            }
            if this.bell.settle() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Bell {
    /// Sets who is woken from now on.
    fn belong_to(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.clone_from(waker);
    }

    /// Ends a poll, and says whether nothing has rung meanwhile.
    fn settle(&self) -> bool {
        let (before, after) = (POLLED, QUIET);
        let settled =
            self.state
                .compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst);
        settled.is_ok()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Whoever polls it looks again, and whoever rang before has woken the task.
        if self.state.swap(RUNG, Ordering::SeqCst) == QUIET {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll_once<F: Future>(future: &mut Eager<F>, count: &Arc<Count>) -> Poll<F::Output> {
        let waker = Arc::clone(count).into();
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn what_wakes_itself_goes_on_without_its_task() {
        let count = Arc::default();
        let mut polls = 0;
        let mut future = Eager::new(poll_fn(move |context| {
            polls += 1;
            context.waker().wake_by_ref();
            match polls {
                3 => Poll::Ready(polls),
                _ => Poll::Pending,
            }
        }));
        assert_eq!(poll_once(&mut future, &count), Poll::Ready(3));
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn what_wakes_itself_for_ever_lets_others_run() {
        let count = Arc::default();
        let mut future = Eager::new(poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        assert_eq!(poll_once(&mut future, &count), Poll::Pending);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(poll_once(&mut future, &count), Poll::Pending);
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_others_wake_is_heard() {
        let (told, heard) = tokio::sync::oneshot::channel();
        let waiting = tokio::spawn(Eager::new(heard));
        tokio::task::yield_now().await;
        std::thread::spawn(move || told.send(7))
            .join()
            .unwrap()
            .unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), 7);
    }
}
