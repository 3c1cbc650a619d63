//! A runtime whose backend can be away or slow.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};
use zareba_runtime::{
    Capabilities, Grant, Runtime, RuntimeError, Sandbox, SandboxId, SandboxRequest, SandboxSpec,
    SandboxSummary,
};
use zareba_session::SessionsOptions;

use crate::fixture::Place;

/// A server is taken for gone after 20 s, which is looked at every 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runtime `local`, as if its backend were somewhere else.
pub(crate) struct Backend {
    inner: Arc<dyn Runtime>,
    /// It fails.
    is_away: AtomicBool,
    /// Nobody gets a sandbox, new or old.
    is_held: watch::Sender<bool>,
    /// Somebody waits for one.
    asked: Semaphore,
    removals: AtomicUsize,
}

impl Backend {
    /// One that works, and the options of a server that uses it.
    pub(crate) fn new(place: &Place) -> (Arc<Self>, SessionsOptions) {
        let mut options = place.options();
        let backend = Arc::new(Self {
            inner: options.runtimes.remove("local").unwrap(),
            is_away: AtomicBool::new(false),
            is_held: watch::Sender::new(false),
            asked: Semaphore::new(0),
            removals: AtomicUsize::new(0),
        });
        let runtime: Arc<dyn Runtime> = backend.clone();
        options.runtimes.insert("local".to_owned(), runtime);
        (backend, options)
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Lets whoever asks for a sandbox wait, or go on.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.send_replace(is_held);
    }

    /// Waits until somebody waits for a sandbox.
    pub(crate) async fn asked(&self) {
        let asked = timeout(PATIENCE, self.asked.acquire()).await;
        asked.unwrap().unwrap().forget();
    }

    /// How often a sandbox was removed by its name.
    pub(crate) fn removals(&self) -> usize {
        self.removals.load(Ordering::SeqCst)
    }

    /// Fails while it is away, and waits while it is held.
    async fn admit(&self) -> Result<(), RuntimeError> {
        self.require_here()?;
        let mut is_held = self.is_held.subscribe();
        if *is_held.borrow() {
            self.asked.add_permits(1);
        }
        is_held.wait_for(|is_held| !is_held).await.unwrap();
        Ok(())
    }

    fn require_here(&self) -> Result<(), RuntimeError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(RuntimeError::Internal {
                deed: "reach the backend",
                source: "it is away".into(),
            }),
            false => Ok(()),
        }
    }
}

impl Runtime for Backend {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        self.inner.grant(request)
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        Box::pin(async {
            self.admit().await?;
            self.inner.create(spec).await
        })
    }

    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move {
            self.admit().await?;
            self.inner.attach(&sandbox).await
        })
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move {
            self.require_here()?;
            self.removals.fetch_add(1, Ordering::SeqCst);
            self.inner.destroy(&sandbox).await
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        Box::pin(async {
            self.require_here()?;
            self.inner.list().await
        })
    }
}
