//! The life of a sandbox: what its handle wishes, what its task does about it.
//!
//! The handle ([`Life`]) never ends a sandbox itself. It wishes, or it is dropped, and the task
//! ([`Keeper`]) that owns processes and directories ends them. So closing twice is nothing
//! special, dropping does not block, and a future that is dropped half-way takes nothing down
//! with it.

mod inside;

use std::{future::Future, sync::Arc};

use tokio::sync::watch;

use inside::Inside;

/// What a handle wants of its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// It runs, and ends with the handle.
    Run,
    /// It runs, and goes on when the handle is dropped.
    Outlive,
    /// It ends.
    Close,
}

/// How a sandbox's task was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// End everything.
    Close,
    /// Nobody is left here, and it shall go on.
    Leave,
}

/// The handle's side.
#[derive(Debug)]
pub struct Life {
    wish: watch::Sender<Wish>,
    /// Reaches its end when the task has.
    gone: watch::Receiver<()>,
    inside: Arc<Inside>,
}

/// The task's side.
#[derive(Debug)]
pub struct Keeper {
    wish: watch::Receiver<Wish>,
    inside: Arc<Inside>,
    /// Dropped last.
    _alive: watch::Sender<()>,
}

/// The sandbox is closed, or being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Both sides of a new life.
pub fn begin() -> (Life, Keeper) {
    let (wish, wishes) = watch::channel(Wish::Run);
    let (alive, gone) = watch::channel(());
    let inside = Arc::default();
    let life = Life {
        wish,
        gone,
        inside: Arc::clone(&inside),
    };
    let keeper = Keeper {
        wish: wishes,
        inside,
        _alive: alive,
    };
    (life, keeper)
}

impl Life {
    /// From now on dropping the handle leaves the sandbox running.
    pub fn outlive(&self) {
        self.wish.send_if_modified(|wish| {
            let changes = *wish == Wish::Run;
            if changes {
                *wish = Wish::Outlive;
            }
            changes
        });
    }

    /// Ends the sandbox and returns when nothing of it is left.
    pub async fn close(&self) {
        self.wish.send_replace(Wish::Close);
        self.inside.empty();
        let mut gone = self.gone.clone();
        while gone.changed().await.is_ok() {}
    }

    /// Does work inside the sandbox, in the task of whoever waits for it. Closing stops it also
    /// while nobody polls it, and so does dropping the future.
    ///
    /// # Errors
    /// When the sandbox is closed, or is while the work is under way.
    pub async fn run<T, F>(&self, work: F) -> Result<T, Closed>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.inside.enter(work)?.await
    }
}

impl Keeper {
    /// Waits until the sandbox is to be closed or left.
    pub async fn farewell(&mut self) -> Farewell {
        while *self.wish.borrow_and_update() != Wish::Close {
            if self.wish.changed().await.is_err() {
                // The handle is gone; what it wished last holds.
                return match *self.wish.borrow() {
                    Wish::Run | Wish::Close => Farewell::Close,
                    Wish::Outlive => Farewell::Leave,
                };
            }
        }
        Farewell::Close
    }

    /// Stops all work that is under way inside; none begins any more.
    pub async fn emptied(&self) {
        self.inside.empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_handle_closes_or_leaves_as_it_wished() {
        let (life, mut keeper) = begin();
        drop(life);
        assert_eq!(keeper.farewell().await, Farewell::Close);

        let (life, mut keeper) = begin();
        life.outlive();
        drop(life);
        assert_eq!(keeper.farewell().await, Farewell::Leave);
    }

    #[tokio::test]
    async fn closing_beats_outliving() {
        let (life, mut keeper) = begin();
        let task = tokio::spawn(async move { keeper.farewell().await });
        life.close().await;
        life.outlive();
        assert_eq!(task.await.unwrap(), Farewell::Close);
        assert_eq!(life.run(async {}).await, Err(Closed));
    }

    #[tokio::test]
    async fn work_is_stopped_by_closing_even_when_nobody_polls_it() {
        let (life, mut keeper) = begin();
        let task = tokio::spawn(async move {
            let farewell = keeper.farewell().await;
            keeper.emptied().await;
            farewell
        });
        let mut work = Box::pin(life.run(std::future::pending::<()>()));
        let begun = tokio::select! {
            biased;
            _ = &mut work => false,
            () = std::future::ready(()) => true,
        };
        assert!(begun);
        life.close().await;
        assert_eq!(task.await.unwrap(), Farewell::Close);
        assert_eq!(work.await, Err(Closed));
    }

    #[tokio::test]
    async fn work_that_ended_or_was_dropped_leaves_nothing() {
        let (life, _keeper) = begin();
        let held = Arc::new(());
        let work = Arc::clone(&held);
        assert_eq!(life.run(async move { drop(work) }).await, Ok(()));
        let work = Arc::clone(&held);
        let mut dropped = Box::pin(life.run(async move {
            std::future::pending::<()>().await;
            drop(work);
        }));
        assert!(poll_once(dropped.as_mut()).is_pending());
        assert_eq!(Arc::strong_count(&held), 2);
        drop(dropped);
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(format!("{life:?}").contains("under_way: 0"), "{life:?}");
    }

    fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
