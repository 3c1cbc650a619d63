//! A sandbox as the place where hosts of tools run.

use std::sync::Arc;

use zareba_runtime::Sandbox;
use zareba_tools::{Place, PlaceError};
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramRequest},
};

/// A sandbox as the place where hosts of tools run.
pub(super) struct SandboxPlace(pub(super) Arc<dyn Sandbox>);

impl Place for SandboxPlace {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        Box::pin(async move {
            let started = self.0.start_program(request).await;
            started.map_err(|error| PlaceError {
                class: error.class(),
                message: error.to_string(),
            })
        })
    }
}
