//! Takes questions from sockets and puts answers back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dns::message::{QUESTION_BYTES_MAX, Transport};
use crate::dns::service;
use crate::proxy::Proxy;

/// Questions that are being answered at once on one socket; more are dropped, and the program
/// that asked asks again.
const PENDING_MAX: usize = 64;
/// Questions on one TCP connection.
const STREAM_QUESTIONS_MAX: usize = 64;
/// How long a TCP connection may take for each question.
const STREAM_PAUSE: Duration = Duration::from_secs(10);

/// How long nothing is received after receiving failed: without a pause a socket that is broken
/// for good would keep a processor busy.
const RECEIVE_PAUSE: Duration = Duration::from_millis(100);

/// Answers datagrams until the proxy closes. Dropping it drops the answers under way.
pub(crate) async fn serve_udp(proxy: Arc<Proxy>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let mut pending = JoinSet::new();
    let mut buffer = vec![0; QUESTION_BYTES_MAX];
    loop {
        let received = tokio::select! {
            () = proxy.closed() => return,
            Some(_) = pending.join_next() => continue,
            received = socket.recv_from(&mut buffer) => received,
        };
        let (length, from) = match received {
            Ok(received) => received,
            // That of an earlier answer: nobody waited for it any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot receive a lookup");
                tokio::time::sleep(RECEIVE_PAUSE).await;
                continue;
            }
        };
        if pending.len() >= PENDING_MAX {
            continue;
        }
        let packet = buffer.get(..length).unwrap_or_default().to_vec();
        let (proxy, socket) = (proxy.clone(), socket.clone());
        pending.spawn(async move {
            if let Some(answer) = service::answer(&proxy, &packet, Transport::Udp).await {
                // The program may be gone.
                let _ = socket.send_to(&answer, from).await;
            }
        });
    }
}

/// Answers the questions of one connection, one after the other.
pub(crate) async fn serve_stream(proxy: Arc<Proxy>, mut stream: TcpStream) {
    for _ in 0..STREAM_QUESTIONS_MAX {
        let exchanged = tokio::select! {
            () = proxy.closed() => return,
            exchanged = timeout(STREAM_PAUSE, exchange(&proxy, &mut stream)) => exchanged,
        };
        // Late, closed or broken: the program asks again on another connection if it has to.
        if !matches!(exchanged, Ok(Ok(()))) {
            return;
        }
    }
}

async fn exchange(proxy: &Proxy, stream: &mut TcpStream) -> io::Result<()> {
    let length = usize::from(stream.read_u16().await?);
    if length > QUESTION_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await?;
    let answer = service::answer(proxy, &packet, Transport::Tcp).await;
    let answer = answer.ok_or(io::ErrorKind::InvalidData)?;
    let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
    let framed = [&length.to_be_bytes()[..], &answer].concat();
    stream.write_all(&framed).await
}
