//! One client, on a pair of streams: one JSON document to a line.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use rmcp::{ServiceExt as _, transport::async_rw::AsyncRwTransport};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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

/// What a client says, which notes when that has ended.
struct ClientInput<I> {
    input: I,
    is_gone: Arc<AtomicBool>,
}

/// What a client hears, until it has closed its end: that is how it leaves, and an answer to a call
/// that was still under way would find no reader.
struct ClientOutput<O> {
    output: O,
    is_gone: Arc<AtomicBool>,
}

impl<I: AsyncRead + Unpin> AsyncRead for ClientInput<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let is_end = buffer.remaining() > 0 && buffer.filled().len() == before;
        if matches!(polled, Poll::Ready(Ok(()))) && is_end {
            self.is_gone.store(true, Ordering::Release);
        }
        polled
    }
}

impl<O: AsyncWrite + Unpin> AsyncWrite for ClientOutput<O> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_gone.load(Ordering::Acquire) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.output).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(context)
    }
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
    let is_gone = Arc::new(AtomicBool::new(false));
    let input = ClientInput {
        input,
        is_gone: Arc::clone(&is_gone),
    };
    let output = ClientOutput { output, is_gone };
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
