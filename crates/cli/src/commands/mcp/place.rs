//! A sandbox as the place that a server of tools drives, and where other servers run.

use std::sync::Arc;

use zareba_mcp::server::{PlaceError, Workplace};
use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_runtime::{RuntimeError, Sandbox};
use zareba_tools::Place;
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramRequest},
};

/// A sandbox as such a place.
pub(crate) struct SandboxPlace {
    sandbox: Arc<dyn Sandbox>,
}

impl SandboxPlace {
    pub(crate) fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self { sandbox }
    }
}

impl Workplace for SandboxPlace {
    fn workspace(&self) -> String {
        self.sandbox.workspace().to_string_lossy().into_owned()
    }

    fn run(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, PlaceError>> {
        Box::pin(async move {
            let answer = self.sandbox.run_action(action).await;
            answer.map_err(|error| failure(&error))
        })
    }

    fn list(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, PlaceError>> {
        Box::pin(async move {
            let names = self.sandbox.list_files(path).await;
            names.map_err(|error| failure(&error))
        })
    }
}

impl Place for SandboxPlace {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, zareba_tools::PlaceError>> {
        Box::pin(async move {
            let started = self.sandbox.start_program(request).await;
            started.map_err(|error| zareba_tools::PlaceError {
                class: error.class(),
                message: chain(&error),
            })
        })
    }
}

fn failure(error: &RuntimeError) -> PlaceError {
    PlaceError {
        class: error.class(),
        message: chain(error),
    }
}

/// An error with its causes, in one line.
fn chain(error: &RuntimeError) -> String {
    let first = error as &dyn std::error::Error;
    let causes = std::iter::successors(Some(first), |error| error.source());
    let texts: Vec<String> = causes.take(8).map(ToString::to_string).collect();
    texts.join(": ")
}
