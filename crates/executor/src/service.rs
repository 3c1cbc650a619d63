//! The executor as its HTTP server sees it.

use std::sync::Arc;

use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_wire::{ActionService, BoxFuture, ByteStream, Download, TransferError, Upload};

use crate::Executor;

impl ActionService for Executor {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent> {
        Box::pin(Executor::execute(self, action))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>> {
        let files = Arc::clone(&self.files);
        Box::pin(async move {
            // A listing that fails is empty by contract.
            tokio::task::spawn_blocking(move || files.list(path.as_deref())).await.unwrap_or_default()
        })
    }

    fn upload(&self, request: Upload, body: ByteStream) -> BoxFuture<'_, Result<(), TransferError>> {
        Box::pin(self.transfers.upload(request, body))
    }

    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>> {
        Box::pin(self.transfers.download(request))
    }

    fn is_ready(&self) -> bool {
        self.shells.are_open()
    }
}
