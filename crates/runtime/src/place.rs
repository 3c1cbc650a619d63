//! A sandbox as a place where programs are started.

use std::sync::Arc;

use zareba_wire::{
    BoxFuture,
    program::{Place, PlaceError, ProgramConnection, ProgramRequest},
};

use crate::{RuntimeError, Sandbox};

/// Causes of an error that are told.
const CAUSES_MAX: usize = 8;

/// A sandbox as a place where programs are started.
#[derive(Clone)]
pub struct SandboxPlace(pub Arc<dyn Sandbox>);

impl Place for SandboxPlace {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        Box::pin(async move { Ok(self.0.start_program(request).await?) })
    }
}

/// With its causes, in one line.
impl From<RuntimeError> for PlaceError {
    fn from(error: RuntimeError) -> Self {
        let first: &dyn std::error::Error = &error;
        let causes = std::iter::successors(Some(first), |error| error.source());
        let texts: Vec<String> = causes.take(CAUSES_MAX).map(ToString::to_string).collect();
        Self {
            class: error.class(),
            message: texts.join(": "),
        }
    }
}

impl std::fmt::Debug for SandboxPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("SandboxPlace")
            .field(&self.0.workspace())
            .finish()
    }
}
