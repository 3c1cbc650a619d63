//! Starting a session: its sandbox, its secrets, and what its workspace brings.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{Runtime, RuntimeError, Sandbox, SandboxSpec, StatusUpdate};
use zareba_wire::variables::VariableChanges;

use crate::{Secret, SessionError, SessionState, Setup, conductor::Conductor, event, setup};

/// Changes of status that may wait to be recorded; a sandbox has about ten in its life.
const STATUSES_MAX: usize = 64;

/// What a session is started with and what is not kept.
pub(crate) struct Ingredients {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) secrets: Vec<(String, Secret)>,
    pub(crate) no_change_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) setup: Setup,
}

impl Conductor {
    /// Starts it, and takes the state that comes of that.
    pub(crate) async fn start(self: Arc<Self>, ingredients: Ingredients) {
        let (told, mut statuses) = mpsc::channel(STATUSES_MAX);
        let mut closing = self.closing.subscribe();
        let started = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Err(self.wrong_state("be started")),
            started = self.bring_up(ingredients, told, &mut statuses) => started,
        };
        // Not within the choice above: what is being written down must not be given up half-way.
        let ready = match started {
            Ok(()) => self.become_state(SessionState::Ready).await,
            Err(error) => return self.fail(error, &mut statuses).await,
        };
        match ready {
            Ok(()) => self.listen(statuses),
            Err(error) => self.fail(error.into(), &mut statuses).await,
        }
    }

    async fn bring_up(
        self: &Arc<Self>,
        ingredients: Ingredients,
        told: mpsc::Sender<StatusUpdate>,
        statuses: &mut mpsc::Receiver<StatusUpdate>,
    ) -> Result<(), SessionError> {
        let spec = self.spec(&ingredients, told)?;
        let sandbox = self
            .create_sandbox(&*ingredients.runtime, spec, statuses)
            .await?;
        let secrets = ingredients.secrets.into_iter();
        let secrets: Vec<_> = secrets.map(|(name, secret)| (name, secret.0)).collect();
        if !secrets.is_empty() {
            let secrets = VariableChanges::set(secrets).map_err(RuntimeError::from)?;
            sandbox.set_variables(secrets).await?;
        }
        if ingredients.setup == Setup::Workspace
            && setup::run(self, &*sandbox).await == setup::Done::Something
        {
            self.record_status(RuntimeStatus::Ready, "Runtime is ready.")
                .await;
        }
        Ok(())
    }

    fn spec(
        &self,
        ingredients: &Ingredients,
        told: mpsc::Sender<StatusUpdate>,
    ) -> Result<SandboxSpec, SessionError> {
        let session = self.id.clone();
        let on_status = move |update: &StatusUpdate| {
            if told.try_send(update.clone()).is_err() {
                tracing::warn!(%session, status = %update.status, "a change of status is not recorded");
            }
        };
        Ok(SandboxSpec {
            id: Some(self.sandbox_id()?),
            image: self.facts.image.clone(),
            workspace: self.facts.workspace.clone(),
            environment: ingredients.environment.clone(),
            no_change_timeout: ingredients.no_change_timeout,
            timeout: ingredients.timeout,
            request: self.facts.request.clone(),
            on_status: Some(Arc::new(on_status)),
        })
    }

    /// Creates the sandbox, keeps it, and records what is told meanwhile, in order.
    async fn create_sandbox(
        &self,
        runtime: &dyn Runtime,
        spec: SandboxSpec,
        statuses: &mut mpsc::Receiver<StatusUpdate>,
    ) -> Result<Arc<dyn Sandbox>, RuntimeError> {
        let mut create = runtime.create(spec);
        let created = loop {
            tokio::select! {
                biased;
                Some(update) = statuses.recv() => self.record_update(&update).await,
                created = &mut create => break created,
            }
        };
        drop(create);
        // At once: a close that comes while something is recorded must find it.
        if let Ok(sandbox) = &created {
            self.set_sandbox(Arc::clone(sandbox));
        }
        self.drain(statuses).await;
        created
    }

    async fn drain(&self, statuses: &mut mpsc::Receiver<StatusUpdate>) {
        while let Ok(update) = statuses.try_recv() {
            self.record_update(&update).await;
        }
    }

    async fn record_update(&self, update: &StatusUpdate) {
        let message = event::without_paths(&update.message);
        self.record_status(update.status, &message).await;
    }

    async fn fail(&self, error: SessionError, statuses: &mut mpsc::Receiver<StatusUpdate>) {
        if let Some(sandbox) = self.take_sandbox()
            && let Err(error) = sandbox.close().await
        {
            tracing::warn!(session = %self.id, %error, "cannot end a sandbox that was no use");
        }
        self.drain(statuses).await;
        tracing::warn!(session = %self.id, error = event::chain(&error), "cannot start a session");
        let message = event::told(&error);
        *self
            .failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
        let (state, status) = (SessionState::Failed, RuntimeStatus::Error);
        if let Err(error) = self.become_with(state, status, &message).await {
            tracing::error!(session = %self.id, %error, "cannot write down that a session failed");
        }
    }

    /// Records what the sandbox tells later, for as long as it can. The task does not keep the
    /// session: it ends with the sandbox.
    fn listen(self: &Arc<Self>, mut statuses: mpsc::Receiver<StatusUpdate>) {
        let session = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(update) = statuses.recv().await {
                let Some(session) = session.upgrade() else {
                    return;
                };
                match update.status {
                    RuntimeStatus::RuntimeDisconnected => {
                        session.lose(&event::without_paths(&update.message)).await;
                    }
                    // Recorded by whoever closes it.
                    RuntimeStatus::Stopped => {}
                    _ => session.record_update(&update).await,
                }
            }
        });
    }
}
