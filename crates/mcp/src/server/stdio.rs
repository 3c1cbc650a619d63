//! One client, on a pair of streams: one JSON document to a line.

use rmcp::{ServiceExt as _, transport::async_rw::AsyncRwTransport};
use tokio::io::{AsyncRead, AsyncWrite};

use super::ToolServer;

/// A message from a client; a file to write is one.
const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why a client on a pair of streams was not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// What came first was no beginning of the protocol.
    #[error("the client did not begin as the Model Context Protocol asks")]
    Begin(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault of ours.
    #[error("the connection to the client failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Serves one client until it closes its end.
///
/// # Errors
/// When it does not speak the protocol. One that goes away before its first word is none.
pub async fn serve_stdio(
    server: ToolServer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    let transport =
        AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
    let running = match server.serve(transport).await {
        Ok(running) => running,
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Begin(Box::new(error))),
    };
    let ended = running.waiting().await;
    ended.map_err(|error| StdioError::Failed(Box::new(error)))?;
    Ok(())
}
