//! A sandbox as the place that a server of tools drives.

use std::sync::Arc;

use zareba_mcp::server::{PlaceError, Workplace};
use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_runtime::{ChangesRequest, Sandbox};
use zareba_wire::BoxFuture;

/// A sandbox as such a place.
pub(super) struct SandboxWorkplace(pub(super) Arc<dyn Sandbox>);

impl Workplace for SandboxWorkplace {
    fn workspace(&self) -> String {
        self.0.workspace().to_string_lossy().into_owned()
    }

    fn run(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, PlaceError>> {
        Box::pin(async move { Ok(self.0.run_action(action).await?) })
    }

    fn patch(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<u8>, PlaceError>> {
        Box::pin(async move { Ok(self.0.patch(ChangesRequest { path }).await?.bytes) })
    }

    fn list(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, PlaceError>> {
        Box::pin(async move { Ok(self.0.list_files(path).await?) })
    }
}
