//! What exists of a sandbox beside its processes, and removing all of it.

use std::path::PathBuf;

use zareba_runtime::directory::Claim;

use crate::{
    EngineError,
    directory::{self, remove_tree},
    engine::Engine,
    request::SANDBOX_LABEL,
};

/// What has to go when a sandbox does.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) engine: Engine,
    pub(crate) directory: Claim,
    /// By id.
    pub(crate) container: Option<String>,
    /// Its own bridge.
    pub(crate) network: Option<String>,
    /// Volumes that hold its overlays.
    pub(crate) volumes: Vec<String>,
    /// Where the changes in those overlays are.
    pub(crate) overlays: Option<PathBuf>,
}

impl Remains {
    /// All that is known of a sandbox by its labels.
    pub(crate) async fn find(
        engine: &Engine,
        owner: &str,
        directory: Claim,
        overlays: Option<PathBuf>,
    ) -> Result<Self, EngineError> {
        let sandbox = directory.sandbox();
        let label = sandbox.as_ref().map(|id| format!("{SANDBOX_LABEL}={id}"));
        let label = label.unwrap_or_default();
        let is_ours = |labels: &Option<std::collections::HashMap<String, String>>| {
            let owner_label = labels
                .as_ref()
                .and_then(|all| all.get(crate::request::OWNER_LABEL));
            owner_label.is_some_and(|found| found == owner)
        };
        let containers = engine.list(&label).await?;
        let container = containers.into_iter().find(|it| is_ours(&it.labels));
        Ok(Self {
            container: container.and_then(|container| container.id),
            network: engine.networks(&label).await?.into_iter().next(),
            volumes: engine.volumes(&label).await?,
            engine: engine.clone(),
            overlays: sandbox.and_then(|id| Some(overlays?.join(id.as_str()))),
            directory,
        })
    }

    /// Removes everything. When the Engine does not let us, the directory stays, so that the next
    /// attempt finds what is left.
    pub(crate) async fn remove(self) -> Result<(), EngineError> {
        self.remove_from_engine().await?;
        directory::remove(self.directory).await;
        Ok(())
    }

    /// Removes what the Engine has of it.
    pub(crate) async fn remove_from_engine(&self) -> Result<(), EngineError> {
        if let Some(container) = &self.container {
            self.engine.remove(container).await?;
        }
        if let Some(network) = &self.network {
            self.engine.remove_network(network).await?;
        }
        for volume in &self.volumes {
            self.engine.remove_volume(volume).await?;
        }
        if let Some(overlays) = self.overlays.clone().filter(|path| path.exists()) {
            let removed = tokio::task::spawn_blocking(move || remove_tree(&overlays)).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(%error, "changes of an overlay cannot be removed");
            }
        }
        Ok(())
    }
}
