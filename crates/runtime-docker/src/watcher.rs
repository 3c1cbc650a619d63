//! Watches what happens to containers, so that an end is noticed at once (DK-7).
//!
//! One stream of events serves all sandboxes of a runtime. An event only stirs whoever waits for
//! its container: what has become of that is asked of the Engine. So nothing depends on events
//! that were missed while the Engine was away; after it came back everybody is stirred.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::StreamExt as _;
use tokio::{sync::watch, task::JoinHandle};

use crate::engine::Engine;

/// The longest rest between two attempts to reach an Engine that is away.
const REST_MAX: Duration = Duration::from_secs(2);
const REST_MIN: Duration = Duration::from_millis(50);

/// What has happened to a container since we watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    /// Anything at all, counted.
    pub(crate) anything: u64,
    /// A process inside was killed because there was no memory left.
    pub(crate) out_of_memory: u64,
}

/// Watches containers of one owner until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    watched: Arc<Watched>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Watched {
    next: AtomicU64,
    by_number: Mutex<HashMap<u64, (String, watch::Sender<Happened>)>>,
}

/// Tells what happens to one container.
#[derive(Debug)]
pub(crate) struct Notice {
    number: u64,
    watched: Arc<Watched>,
    happened: watch::Receiver<Happened>,
}

impl Watcher {
    /// Begins to listen. Must be called inside a runtime.
    pub(crate) fn begin(engine: Engine, label: String) -> Self {
        let watched = Arc::<Watched>::default();
        let task = tokio::spawn(listen(engine, label, Arc::clone(&watched)));
        Self { watched, task }
    }

    /// Whatever happens to this container from now on is told.
    pub(crate) fn watch(&self, container: &str) -> Notice {
        let number = self.watched.next.fetch_add(1, Ordering::Relaxed);
        let (tell, mut happened) = watch::channel(Happened::default());
        // Something may have happened before we looked.
        happened.mark_changed();
        self.watched.change(|all| {
            all.insert(number, (container.to_owned(), tell));
        });
        Notice {
            number,
            watched: Arc::clone(&self.watched),
            happened,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Notice {
    /// Waits for something to happen.
    pub(crate) async fn stirred(&mut self) {
        if self.happened.changed().await.is_err() {
            // Nobody watches any more.
            std::future::pending().await
        }
    }

    /// The same, for others to ask as well.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Happened> {
        self.happened.clone()
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        let number = self.number;
        self.watched.change(|all| drop(all.remove(&number)));
    }
}

impl Watched {
    fn change<T>(
        &self,
        work: impl FnOnce(&mut HashMap<u64, (String, watch::Sender<Happened>)>) -> T,
    ) -> T {
        let mut all = self
            .by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        work(&mut all)
    }

    fn stir(&self, is_meant: impl Fn(&str) -> bool, out_of_memory: bool) {
        self.change(|all| {
            for (container, tell) in all.values().filter(|(name, _)| is_meant(name)) {
                tracing::trace!(container, "something happened to a container");
                tell.send_modify(|happened| {
                    happened.anything += 1;
                    happened.out_of_memory += u64::from(out_of_memory);
                });
            }
        });
    }
}

async fn listen(engine: Engine, label: String, watched: Arc<Watched>) {
    let mut rest = REST_MIN;
    loop {
        // From before the question whether it is there: nothing falls between the two.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_secs());
        if engine.api_version().await.is_ok() {
            rest = REST_MIN;
            let mut events = engine.events(&label, since);
            watched.stir(|_| true, false);
            while let Some(Ok(event)) = events.next().await {
                // Our own connections to executors, where they go through the Engine.
                if event
                    .action
                    .as_deref()
                    .is_some_and(|it| it.starts_with("exec_"))
                {
                    continue;
                }
                let container = event.actor.and_then(|actor| actor.id).unwrap_or_default();
                let is_oom = event.action.as_deref() == Some("oom");
                watched.stir(|name| name == container, is_oom);
            }
            tracing::debug!("the Engine's events have ended");
        }
        tokio::time::sleep(rest.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
        rest = (rest * 2).min(REST_MAX);
    }
}
