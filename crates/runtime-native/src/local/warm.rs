//! Executors that are started before anybody asks for one.
//!
//! A warm executor works in an empty directory of its own, which becomes the sandbox's workspace
//! when it is handed out. It is therefore only for sandboxes that bring no workspace, no
//! variables and no patience of their own; others start cold. What a warm executor believes and
//! what its sandbox says can thus never differ.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::Mutex as Queue;
use zareba_runtime::{RuntimeError, SandboxSpec};

use super::launch::{Launcher, Started};
use crate::ServerLifetime;

/// What warm executors were good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmCounts {
    /// Started and waiting.
    pub ready: usize,
    /// Sandboxes that got one.
    pub handed_out: u64,
    /// Sandboxes that had to start their own.
    pub cold: u64,
    /// Executors that ended while they waited.
    pub lost: u64,
}

/// The executors that wait. Dropping it ends them.
#[derive(Debug)]
pub(super) struct WarmPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    launcher: Arc<Launcher>,
    state: Mutex<State>,
    /// Held by the one that starts them, so that there are never more than were asked for.
    filling: Queue<()>,
}

#[derive(Debug, Default)]
struct State {
    /// How many shall wait.
    target: usize,
    waiting: VecDeque<Started>,
    counts: WarmCounts,
}

impl WarmPool {
    pub(super) fn new(launcher: &Arc<Launcher>) -> Self {
        let target = match launcher.local.lifetime {
            ServerLifetime::WithUs => launcher.local.warm_servers,
            // One that outlives us must belong to somebody who can find it.
            ServerLifetime::KeptAlive { .. } => 0,
        };
        Self {
            shared: Arc::new(Shared {
                launcher: Arc::clone(launcher),
                state: Mutex::new(State {
                    target,
                    ..State::default()
                }),
                filling: Queue::default(),
            }),
        }
    }

    /// An executor for this sandbox, when one fits; another is started in its place.
    pub(super) fn take(&self, spec: &SandboxSpec) -> Option<Started> {
        let started = self.pick(spec);
        if self.shared.state().target > 0 {
            let shared = Arc::downgrade(&self.shared);
            tokio::spawn(async move {
                if let Err(error) = fill(&shared).await {
                    tracing::warn!(%error, "cannot start an executor ahead");
                }
            });
        }
        started
    }

    /// Starts executors until there are enough.
    pub(super) async fn fill(&self) -> Result<(), RuntimeError> {
        fill(&Arc::downgrade(&self.shared)).await
    }

    /// Ends those that wait, starts no more, and returns when they are gone.
    pub(super) async fn empty(&self) {
        self.shared.state().target = 0;
        // One that is just being started will wait, too.
        let _filling = self.shared.filling.lock().await;
        let waiting = std::mem::take(&mut self.shared.state().waiting);
        for started in waiting {
            started.life.close().await;
        }
    }

    pub(super) fn counts(&self) -> WarmCounts {
        let state = self.shared.state();
        WarmCounts {
            ready: state.waiting.len(),
            ..state.counts
        }
    }

    fn pick(&self, spec: &SandboxSpec) -> Option<Started> {
        let fits = spec.id.is_none()
            && spec.image.is_none()
            && spec.workspace.is_none()
            && spec.environment.is_empty()
            && spec.no_change_timeout == self.shared.launcher.local.warm_no_change_timeout;
        let mut state = self.shared.state();
        state.sweep();
        let started = if fits {
            state.waiting.pop_front()
        } else {
            None
        };
        match started {
            Some(_) => state.counts.handed_out += 1,
            None => state.counts.cold += 1,
        }
        started
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Forgets those that ended while they waited.
    fn sweep(&mut self) {
        let before = self.waiting.len();
        self.waiting.retain(|started| !started.is_lost());
        self.counts.lost += (before - self.waiting.len()) as u64;
    }
}

/// Starts executors until there are enough, or until the pool is gone.
async fn fill(pool: &Weak<Shared>) -> Result<(), RuntimeError> {
    while let Some(shared) = pool.upgrade() {
        let filling = shared.filling.lock().await;
        {
            let mut state = shared.state();
            state.sweep();
            if state.waiting.len() >= state.target {
                return Ok(());
            }
        }
        let started = shared.launcher.launch_ahead().await?;
        shared.state().waiting.push_back(started);
        drop(filling);
    }
    Ok(())
}
