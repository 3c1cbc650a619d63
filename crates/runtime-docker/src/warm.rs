//! Sandboxes that are started ahead, so that one is there when it is asked for.
//!
//! A warm sandbox has an empty workspace and no name that anybody chose; only a spec that asks for
//! nothing else gets one. It belongs to the pool until then, and dropping the pool closes it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{RuntimeError, SandboxSpec, StatusCallback, StatusUpdate, Statuses};

use crate::{docker::Shared, make::make, sandbox::DockerSandbox};

/// How long an action of a warm sandbox may take that does not say so itself, until the spec that
/// gets it says so.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What a warm pool was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmCounts {
    /// Sandboxes that wait.
    pub waiting: usize,
    /// Sandboxes that were handed out.
    pub handed_out: u64,
    /// Specs that asked for something else, or found none.
    pub missed: u64,
}

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
    handed_out: u64,
    missed: u64,
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

    pub(crate) fn counts(&self) -> WarmCounts {
        let state = self.lock();
        WarmCounts {
            waiting: state.waiting.len(),
            handed_out: state.handed_out,
            missed: state.missed,
        }
    }

    /// Starts sandboxes until as many wait as were asked for.
    pub(crate) async fn fill(&self) -> Result<(), RuntimeError> {
        fill(&self.shared, &self.state, &self.filling).await
    }

    /// Hands one out, and starts another in its place in the background.
    pub(crate) async fn take(&self, spec: &SandboxSpec) -> Option<DockerSandbox> {
        if self.shared.options.warm.sandboxes == 0 {
            return None;
        }
        let taken = if self.fits(spec) {
            self.take_living().await
        } else {
            None
        };
        {
            let mut state = self.lock();
            match &taken {
                Some(_) => state.handed_out += 1,
                None => state.missed += 1,
            }
        }
        self.refill();
        let Warm { mut sandbox, heir } = taken?;
        if let Some(callback) = &spec.on_status {
            let _ = heir.0.set(Arc::clone(callback));
        }
        sandbox.parts.record.timeout = spec.timeout;
        let statuses: &Statuses = &sandbox.parts.statuses;
        statuses.change(RuntimeStatus::StartingRuntime, "Starting runtime...");
        statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
        statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
        Some(sandbox)
    }

    /// The next that answers. One that has ended meanwhile is closed by being dropped.
    async fn take_living(&self) -> Option<Warm> {
        loop {
            let next = self.lock().waiting.pop_front()?;
            if next.sandbox.parts.link.client().alive().await.is_ok() {
                return Some(next);
            }
        }
    }

    /// Closes those that wait, and returns when they are gone; no more are started.
    pub(crate) async fn empty(&self) {
        let waiting = {
            let mut state = self.lock();
            state.is_shut = true;
            std::mem::take(&mut state.waiting)
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
        spec.id.is_none()
            && spec.workspace.is_none()
            && spec.environment.is_empty()
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
        state.waiting.clear();
    }
}

async fn fill(
    shared: &Arc<Shared>,
    state: &Arc<Mutex<State>>,
    filling: &Arc<tokio::sync::Mutex<()>>,
) -> Result<(), RuntimeError> {
    let _filling = filling.lock().await;
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted =
        |state: &State| !state.is_shut && state.waiting.len() < shared.options.warm.sandboxes;
    while is_wanted(&lock()) {
        let heir = Heir::default();
        let spec = SandboxSpec {
            id: None,
            image: None,
            workspace: None,
            environment: Vec::new(),
            no_change_timeout: shared.options.warm.no_change_timeout,
            timeout: TIMEOUT,
            on_status: Some(heir.callback()),
        };
        let statuses = Arc::new(Statuses::new(spec.on_status.clone()));
        let sandbox = make(Arc::clone(shared), spec, statuses).await?;
        let rejected = {
            let mut state = lock();
            if is_wanted(&state) {
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
