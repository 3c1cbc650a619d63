//! The executor as its HTTP server sees it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_wire::{
    ActionService, BoxFuture, ByteStream, Download, TransferError, Upload,
    files::FileService,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest, StartProgramError},
    variables::{InvalidVariable, VariableChanges},
};

use crate::{Executor, files::meant_path};

impl ActionService for Executor {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent> {
        Box::pin(Executor::execute(self, action))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>> {
        let tools = Arc::clone(&self.acting.tools);
        Box::pin(async move {
            // A listing that fails is empty by contract.
            tokio::task::spawn_blocking(move || tools.files.list(path.as_deref()))
                .await
                .unwrap_or_default()
        })
    }

    fn upload(
        &self,
        mut request: Upload,
        body: ByteStream,
    ) -> BoxFuture<'_, Result<(), TransferError>> {
        request.destination = meant(&request.destination);
        Box::pin(self.transfers.upload(request, body))
    }

    fn download(&self, mut request: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>> {
        request.path = meant(&request.path);
        Box::pin(self.transfers.download(request))
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, StartProgramError>> {
        Box::pin(async move { self.programs.start(&request) })
    }

    fn read_output(&self, request: OutputRequest) -> BoxFuture<'_, Option<OutputPiece>> {
        Box::pin(async move { Some(self.acting.outputs.read(&request).await) })
    }

    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Option<bool>> {
        Box::pin(std::future::ready(Some(self.acting.outputs.stop(&request))))
    }

    fn set_variables(
        &self,
        changes: VariableChanges,
    ) -> BoxFuture<'_, Option<Result<(), InvalidVariable>>> {
        Box::pin(std::future::ready(Some(self.variables.change(&changes))))
    }

    fn files(&self) -> Option<&dyn FileService> {
        Some(&self.raw)
    }

    fn is_ready(&self) -> bool {
        self.acting.shells.are_open()
    }
}

/// What a path from the wire means: names that are not text come in their escaped form, as
/// listings show them.
fn meant(path: &Path) -> PathBuf {
    path.to_str().map_or_else(|| path.to_owned(), meant_path)
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
