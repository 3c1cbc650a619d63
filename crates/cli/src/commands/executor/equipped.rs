//! The executor with servers of tools beside it, which its clients push.

use std::sync::Arc;

use zareba_executor::Executor;
use zareba_mcp::proxy::Proxy;
use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_tools::{Place, PlaceError};
use zareba_wire::{
    ActionService, BoxFuture, ByteStream, Download, TransferError, Upload,
    files::FileService,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest, StartProgramError},
    tool_servers::ToolServers,
    variables::{InvalidVariable, VariableChanges},
};

/// An executor, and servers that run as its programs.
pub(super) struct Equipped {
    executor: Arc<Executor>,
    tools: Arc<Proxy>,
}

impl Equipped {
    pub(super) fn new(executor: Arc<Executor>) -> Self {
        let place = Arc::new(Inside(Arc::clone(&executor)));
        Self {
            executor,
            tools: Arc::new(Proxy::new(place)),
        }
    }
}

/// Where the executor's programs run.
struct Inside(Arc<Executor>);

impl Place for Inside {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        Box::pin(async move { Ok(self.0.start_program(request).await?) })
    }
}

impl ActionService for Equipped {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent> {
        ActionService::execute(&*self.executor, action)
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>> {
        self.executor.list_files(path)
    }

    fn upload(
        &self,
        request: Upload,
        body: ByteStream,
    ) -> BoxFuture<'_, Result<(), TransferError>> {
        self.executor.upload(request, body)
    }

    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>> {
        self.executor.download(request)
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, StartProgramError>> {
        self.executor.start_program(request)
    }

    fn read_output(&self, request: OutputRequest) -> BoxFuture<'_, Option<OutputPiece>> {
        self.executor.read_output(request)
    }

    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Option<bool>> {
        self.executor.stop_action(request)
    }

    fn set_variables(
        &self,
        changes: VariableChanges,
    ) -> BoxFuture<'_, Option<Result<(), InvalidVariable>>> {
        self.executor.set_variables(changes)
    }

    fn files(&self) -> Option<&dyn FileService> {
        self.executor.files()
    }

    fn tool_servers(&self) -> Option<Arc<dyn ToolServers>> {
        Some(Arc::clone(&self.tools) as _)
    }

    fn is_ready(&self) -> bool {
        self.executor.is_ready()
    }
}
