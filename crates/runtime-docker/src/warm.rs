//! Sandboxes that are started ahead, so that one is there when it is asked for.
//!
//! A warm sandbox has an empty workspace and a name that nobody chose; only a spec that asks for
//! nothing else gets one. It belongs to the pool until then: dropping the pool closes it, and it is
//! written down as one that ends with its owner, also where sandboxes are kept alive. It becomes
//! one that is kept in the moment in which it is handed out.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    PoolCounts, RuntimeError, SandboxId, SandboxRequest, SandboxSpec, StatusCallback, StatusUpdate,
    Statuses,
};

use crate::{Lifetime, docker::Shared, make::make, sandbox::DockerSandbox};

/// How long an action of a warm sandbox may take that does not say so itself, until the spec that
/// gets it says so.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long one is kept for somebody who was told its name.
const RESERVED_MAX: Duration = Duration::from_secs(60);

/// Sandboxes that wait.
#[derive(Debug)]
pub(crate) struct WarmPool {
    shared: Arc<Shared>,
    state: Arc<Mutex<State>>,
    /// Only one fills at a time, so that there are never more than asked for.
    filling: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Warm>,
    /// Kept for somebody who was told its name, since then.
    reserved: Vec<(Instant, Warm)>,
    counts: PoolCounts,
    is_shut: bool,
}

/// One that waits, and to whom its statuses will go.
#[derive(Debug)]
struct Warm {
    sandbox: DockerSandbox,
    heir: Heir,
}

/// Whoever gets it; nobody yet.
#[derive(Clone, Default)]
struct Heir(Arc<OnceLock<StatusCallback>>);

impl std::fmt::Debug for Heir {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Heir")
    }
}

impl Heir {
    fn callback(&self) -> StatusCallback {
        let heir = Arc::clone(&self.0);
        Arc::new(move |update: &StatusUpdate| {
            if let Some(callback) = heir.get() {
                callback(update);
            }
        })
    }
}

impl WarmPool {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            state: Arc::default(),
            filling: Arc::default(),
        }
    }

    /// None when nothing is ever started ahead.
    pub(crate) fn counts(&self) -> Option<PoolCounts> {
        let state = self.lock();
        (self.shared.options.warm.sandboxes > 0).then(|| PoolCounts {
            ready: state.waiting.len(),
            ..state.counts
        })
    }

    /// Starts sandboxes until as many wait as were asked for.
    pub(crate) async fn fill(&self) -> Result<(), RuntimeError> {
        fill(&self.shared, &self.state, &self.filling).await
    }

    /// The name of one that fits, which is kept for whoever asks for it by that.
    pub(crate) fn reserve(&self, spec: &SandboxSpec) -> Option<SandboxId> {
        if spec.id.is_some() || !self.fits(spec) {
            return None;
        }
        let mut state = self.lock();
        state.sweep();
        let warm = state.waiting.pop_front()?;
        let id = warm.sandbox.parts.id.clone();
        state.reserved.push((Instant::now(), warm));
        Some(id)
    }

    /// Hands one out, and starts another in its place in the background.
    ///
    /// # Errors
    /// When it cannot be written down as one that is kept; it is closed then.
    pub(crate) async fn take(
        &self,
        spec: &SandboxSpec,
    ) -> Result<Option<DockerSandbox>, RuntimeError> {
        if self.shared.options.warm.sandboxes == 0 {
            return Ok(None);
        }
        let taken = if self.fits(spec) {
            self.take_living(spec.id.as_ref()).await
        } else {
            None
        };
        match &taken {
            Some(_) => self.lock().counts.handed_out += 1,
            None => self.lock().counts.cold += 1,
        }
        let lifetime = self.shared.options.lifetime;
        let handed_over = taken
            .map(|warm| hand_over(warm, spec, lifetime))
            .transpose();
        // After that: whoever waits does not share the disk with it.
        self.refill();
        handed_over
    }

    /// The next that answers, or the one of this name. One that has ended meanwhile is closed by
    /// being dropped.
    async fn take_living(&self, id: Option<&SandboxId>) -> Option<Warm> {
        loop {
            let next = {
                let mut state = self.lock();
                match id {
                    Some(id) => state.claim(id)?,
                    None => state.waiting.pop_front()?,
                }
            };
            if next.sandbox.parts.link.is_alive().await {
                return Some(next);
            }
            self.lock().counts.lost += 1;
        }
    }

    /// Closes those that wait, and returns when they are gone; no more are started.
    pub(crate) async fn empty(&self) {
        let waiting = {
            let mut state = self.lock();
            state.is_shut = true;
            state.take_all()
        };
        // One that is just being started is closed by whoever starts it.
        drop(self.filling.lock().await);
        for warm in waiting {
            warm.sandbox.parts.life.close().await;
        }
    }

    fn fits(&self, spec: &SandboxSpec) -> bool {
        let options = &self.shared.options;
        let image = spec.image.as_ref();
        spec.workspace.is_none()
            && spec.environment.is_empty()
            && spec.request == SandboxRequest::default()
            && spec.no_change_timeout == options.warm.no_change_timeout
            && image.is_none_or(|image| Some(image) == options.image.as_ref())
    }

    fn refill(&self) {
        let (shared, state) = (Arc::clone(&self.shared), Arc::clone(&self.state));
        let filling = Arc::clone(&self.filling);
        tokio::spawn(async move {
            if let Err(error) = fill(&shared, &state, &filling).await {
                tracing::warn!(%error, "no sandbox could be started ahead");
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever still fills when the pool is dropped finds it shut, and closes what it started.
impl Drop for WarmPool {
    fn drop(&mut self) {
        let mut state = self.lock();
        state.is_shut = true;
        drop(state.take_all());
    }
}

impl State {
    /// Takes back those that nobody came for, and forgets those that ended while they waited.
    fn sweep(&mut self) {
        let (kept, stale): (Vec<_>, Vec<_>) = std::mem::take(&mut self.reserved)
            .into_iter()
            .partition(|(since, _)| since.elapsed() < RESERVED_MAX);
        self.reserved = kept;
        self.waiting.extend(stale.into_iter().map(|(_, warm)| warm));
        let before = self.waiting.len();
        self.waiting
            .retain(|warm| warm.sandbox.parts.fate.ended().is_none());
        self.counts.lost += u64::try_from(before - self.waiting.len()).unwrap_or_default();
    }

    /// The one that was kept under this name.
    fn claim(&mut self, id: &SandboxId) -> Option<Warm> {
        let is_it = |(_, warm): &(Instant, Warm)| warm.sandbox.parts.id == *id;
        let at = self.reserved.iter().position(is_it)?;
        Some(self.reserved.swap_remove(at).1)
    }

    fn take_all(&mut self) -> Vec<Warm> {
        let reserved = std::mem::take(&mut self.reserved).into_iter();
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .chain(reserved.map(|(_, warm)| warm))
            .collect()
    }
}

/// Makes it that of the spec, which lives as long as others do.
fn hand_over(
    warm: Warm,
    spec: &SandboxSpec,
    lifetime: Lifetime,
) -> Result<DockerSandbox, RuntimeError> {
    let Warm { mut sandbox, heir } = warm;
    if let Some(callback) = &spec.on_status {
        let _ = heir.0.set(Arc::clone(callback));
    }
    let statuses: &Statuses = &sandbox.parts.statuses;
    statuses.change(RuntimeStatus::StartingRuntime, "Starting runtime...");
    statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
    statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
    sandbox.become_kept(spec.timeout, lifetime)?;
    Ok(sandbox)
}

async fn fill(
    shared: &Arc<Shared>,
    state: &Arc<Mutex<State>>,
    filling: &Arc<tokio::sync::Mutex<()>>,
) -> Result<(), RuntimeError> {
    let _filling = filling.lock().await;
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted = |state: &mut State| {
        state.sweep();
        !state.is_shut && state.waiting.len() < shared.options.warm.sandboxes
    };
    while is_wanted(&mut lock()) {
        let heir = Heir::default();
        let spec = SandboxSpec {
            id: None,
            image: None,
            workspace: None,
            environment: Vec::new(),
            no_change_timeout: shared.options.warm.no_change_timeout,
            timeout: TIMEOUT,
            request: SandboxRequest::default(),
            on_status: Some(heir.callback()),
        };
        let statuses = Arc::new(Statuses::new(spec.on_status.clone()));
        let sandbox = make(Arc::clone(shared), spec, statuses, Vec::new()).await?;
        let rejected = {
            let mut state = lock();
            if is_wanted(&mut state) {
                state.waiting.push_back(Warm { sandbox, heir });
                None
            } else {
                Some(sandbox)
            }
        };
        if let Some(sandbox) = rejected {
            sandbox.parts.life.close().await;
        }
    }
    Ok(())
}
