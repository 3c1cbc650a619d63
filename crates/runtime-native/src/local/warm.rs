//! Executors that are started before anybody asks for one.
//!
//! A warm executor works in an empty directory of its own, which becomes the sandbox's workspace
//! when it is handed out. It is therefore only for sandboxes that bring no workspace, no
//! variables and no patience of their own; others start cold. What a warm executor believes and
//! what its sandbox says can thus never differ.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::Mutex as Queue;
use zareba_runtime::{PoolCounts, RuntimeError, SandboxId, SandboxSpec};

use super::launch::{Launcher, Started};
use crate::ServerLifetime;

/// How long one is kept for somebody who was told its name.
const RESERVED_MAX: Duration = Duration::from_secs(60);

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
    /// Kept for somebody who was told its name, since then.
    reserved: Vec<(Instant, Started)>,
    counts: PoolCounts,
}

impl WarmPool {
    pub(super) fn new(launcher: &Arc<Launcher>) -> Self {
        let is_tied = match launcher.local.lifetime {
            ServerLifetime::WithUs => true,
            // One that outlives us must belong to somebody who can find it. Behind walls it hangs
            // on us until it does.
            ServerLifetime::KeptAlive { .. } => launcher.walls.is_some(),
        };
        let target = if is_tied {
            launcher.local.warm_servers
        } else {
            0
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

    /// The name of an executor that fits, which is kept for whoever asks for it by that.
    pub(super) fn reserve(&self, spec: &SandboxSpec) -> Option<SandboxId> {
        let mut state = self.shared.state();
        state.sweep();
        if spec.id.is_some() || !self.fits(spec) {
            return None;
        }
        let started = state.waiting.pop_front()?;
        let id = started.id.clone();
        state.reserved.push((Instant::now(), started));
        Some(id)
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
        let (waiting, reserved) = {
            let mut state = self.shared.state();
            let state = &mut *state;
            let reserved = std::mem::take(&mut state.reserved);
            (std::mem::take(&mut state.waiting), reserved)
        };
        let reserved = reserved.into_iter().map(|(_, started)| started);
        for started in waiting.into_iter().chain(reserved) {
            started.life.close().await;
        }
    }

    /// None when nothing is ever started ahead.
    pub(super) fn counts(&self) -> Option<PoolCounts> {
        if self.shared.launcher.local.warm_servers == 0 {
            return None;
        }
        let state = self.shared.state();
        Some(PoolCounts {
            ready: state.waiting.len(),
            ..state.counts
        })
    }

    /// What a warm executor believes must be what its sandbox is to be.
    fn fits(&self, spec: &SandboxSpec) -> bool {
        spec.image.is_none()
            && spec.workspace.is_none()
            && spec.environment.is_empty()
            && self.shared.launcher.is_usual(&spec.request)
            && spec.no_change_timeout == self.shared.launcher.local.warm_no_change_timeout
    }

    fn pick(&self, spec: &SandboxSpec) -> Option<Started> {
        let fits = self.fits(spec);
        let mut state = self.shared.state();
        state.sweep();
        let started = match &spec.id {
            _ if !fits => None,
            None => state.waiting.pop_front(),
            Some(id) => state.claim(id),
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
    /// Forgets those that ended while they waited, and takes back those that nobody came for.
    fn sweep(&mut self) {
        let (kept, stale) = std::mem::take(&mut self.reserved)
            .into_iter()
            .partition(|(since, _)| since.elapsed() < RESERVED_MAX);
        self.reserved = kept;
        let stale: Vec<(Instant, Started)> = stale;
        self.waiting
            .extend(stale.into_iter().map(|(_, started)| started));
        let before = self.waiting.len();
        self.waiting.retain(|started| !started.is_lost());
        self.counts.lost += (before - self.waiting.len()) as u64;
    }

    /// The one that was kept under this name, if it still lives.
    fn claim(&mut self, id: &SandboxId) -> Option<Started> {
        let position = self
            .reserved
            .iter()
            .position(|(_, started)| started.id == *id)?;
        let (_, started) = self.reserved.swap_remove(position);
        (!started.is_lost()).then_some(started)
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
