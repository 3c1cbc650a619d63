//! The way into a container of an Engine that shares no directory with us: streams through the
//! Engine, to a small program of ours inside that passes them on.
//!
//! No port is open for it anywhere, and it is as safe as the connection to the Engine is. Our
//! client meets an ordinary Unix socket in the sandbox's private directory; each connection to it
//! becomes a program inside (`zareba dial`) that connects to the executor's socket there. That
//! program runs as the agent's user and can be killed or stopped by it, which costs the connection
//! and nothing else: one that takes nothing any more is given up. It cannot be looked into.

use std::{
    fs, io,
    net::Ipv4Addr,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use bollard::container::LogOutput;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use rustix::fs::{Mode, OFlags, open};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixListener},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::{
    EngineError, delivery,
    door::SOCKET,
    engine::{Attached, Engine},
    request::DOOR,
};

/// Connections at once; our client keeps fewer.
const CONNECTIONS_MAX: usize = 128;

/// How long nobody is accepted after that has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a program inside may take to be connected.
const DIAL_MAX: Duration = Duration::from_secs(30);

/// How patient we are with it.
const PATIENCE: Patience = Patience {
    taking: Duration::from_secs(30),
    silence: Duration::from_secs(60),
};

/// How long a program inside may do nothing. It may be silent for as long as it likes while our
/// end has not said all: some answers take hours.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Until it takes what was sent to it.
    taking: Duration,
    /// Until it says something, once our end has said all.
    silence: Duration,
}

/// What it says then.
const GREETING: &[u8] = b"connected\n";

/// What is passed on at once.
const PIECE_BYTES: usize = 64 * 1024;

/// What it says instead is an error in one line.
const COMPLAINTS_BYTES_MAX: usize = 4096;

/// Where a connection goes inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The executor.
    Executor,
    /// What listens on this port of the container's own loopback.
    Port(u16),
}

/// A socket of this machine behind which a container's executor is. Dropped, it is gone, and with
/// it all connections.
#[derive(Debug)]
pub(crate) struct Relay {
    directory: OwnedFd,
    name: String,
    file: PathBuf,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens in a directory that only we can enter.
    pub(crate) fn listen(directory: &Path, engine: &Engine, container: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = open(directory, flags, Mode::empty())?;
        let name = format!("relay-{:08x}", rand::random::<u32>());
        let listener = UnixListener::bind(reached(&handle, &name))?;
        let task = tokio::spawn(serve(listener, engine.clone(), container.to_owned()));
        Ok(Self {
            directory: handle,
            file: directory.join(&name),
            name,
            task,
        })
    }

    /// Where our client finds it. Paths of sockets must be short, and this one is.
    pub(crate) fn path(&self) -> PathBuf {
        reached(&self.directory, &self.name)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.file);
    }
}

fn reached(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

async fn serve(listener: UnixListener, engine: Engine, container: String) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let Ok((stream, _)) = accepted else {
                    // There are too few descriptors, and there is nobody to wait for.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let (engine, container) = (engine.clone(), container.clone());
                connections.spawn(async move {
                    pass(&engine, &container, Target::Executor, stream).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A connection to a port inside. The caller's end is an ordinary one of this machine; nobody else
/// can get hold of the other, because it must come from where we called.
pub(crate) async fn connect(engine: Engine, container: String, port: u16) -> io::Result<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let calling = TcpStream::connect(listener.local_addr()?).await?;
    let inner = loop {
        let (inner, caller) = listener.accept().await?;
        if caller == calling.local_addr()? {
            break inner;
        }
    };
    calling.set_nodelay(true)?;
    inner.set_nodelay(true)?;
    let dialed = dial(&engine, &container, Target::Port(port)).await;
    let dialed = dialed.map_err(io::Error::other)?;
    tokio::spawn(join(dialed, inner, PATIENCE));
    Ok(calling)
}

async fn pass(
    engine: &Engine,
    container: &str,
    target: Target,
    stream: impl AsyncRead + AsyncWrite + Send,
) {
    match dial(engine, container, target).await {
        Ok(dialed) => join(dialed, stream, PATIENCE).await,
        Err(error) => tracing::warn!(%error, container, "cannot reach an executor"),
    }
}

/// A program inside that is connected, and what came through it already.
struct Dialed {
    streams: Attached,
    early: Bytes,
}

/// Why there is no connection to something inside.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("{0}: {source}", source = .0.source)]
    Engine(EngineError),
    #[error("{0}")]
    Inside(String),
}

async fn dial(engine: &Engine, container: &str, target: Target) -> Result<Dialed, DialError> {
    let mut command = vec![delivery::program_path(), "dial".to_owned()];
    match target {
        Target::Executor => command.extend(["--unix".to_owned(), format!("{DOOR}/{SOCKET}")]),
        Target::Port(port) => command.extend(["--port".to_owned(), port.to_string()]),
    }
    let dialed = async {
        let streams = engine.exec(container, command).await;
        greeted(streams.map_err(DialError::Engine)?).await
    };
    let in_time = tokio::time::timeout(DIAL_MAX, dialed).await;
    in_time.unwrap_or_else(|_| Err(DialError::Inside(format!("no answer within {DIAL_MAX:?}"))))
}

/// Waits until the program inside says that it is connected.
async fn greeted(mut streams: Attached) -> Result<Dialed, DialError> {
    let mut said = BytesMut::new();
    let mut complaints = BytesMut::new();
    while let Some(Ok(piece)) = streams.output.next().await {
        match piece {
            LogOutput::StdOut { message } => said.extend_from_slice(&message),
            LogOutput::StdErr { message } => complaints.extend_from_slice(&message),
            LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
        }
        if said.starts_with(GREETING) {
            let early = said.split_off(GREETING.len()).freeze();
            return Ok(Dialed { streams, early });
        }
        if said.len() >= GREETING.len() || complaints.len() > COMPLAINTS_BYTES_MAX {
            break;
        }
    }
    let complaints = String::from_utf8_lossy(&complaints);
    let complaints = complaints.trim();
    let complaints = complaints.strip_prefix("error: ").unwrap_or(complaints);
    Err(DialError::Inside(complaints.to_owned()))
}

/// Passes bytes on until the program inside ends, which it does when either side has, or until
/// it is too late for that.
async fn join(dialed: Dialed, stream: impl AsyncRead + AsyncWrite + Send, patience: Patience) {
    let Dialed { streams, early } = dialed;
    let Attached {
        mut output,
        mut input,
    } = streams;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (heard, mut hearing) = watch::channel(());
    let inwards = async {
        if send(&mut reader, &mut input, patience).await.is_ok() {
            // Answers still come.
            let silence = patience.silence;
            while let Ok(Ok(())) = tokio::time::timeout(silence, hearing.changed()).await {}
        }
    };
    let outwards = async {
        writer.write_all(&early).await?;
        while let Some(Ok(piece)) = output.next().await {
            heard.send_replace(());
            if let LogOutput::StdOut { message } = piece {
                writer.write_all(&message).await?;
            }
        }
        writer.shutdown().await
    };
    tokio::select! {
        () = inwards => {}
        // Whoever does not read any more has gone.
        _ = outwards => {}
    }
}

/// Passes on what our end says, and that it has said all.
async fn send(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    patience: Patience,
) -> io::Result<()> {
    let mut piece = BytesMut::with_capacity(PIECE_BYTES);
    // Our end is closed as well when it is broken.
    while from.read_buf(&mut piece).await.unwrap_or(0) > 0 {
        let taken = async {
            to.write_all(&piece).await?;
            to.flush().await
        };
        tokio::time::timeout(patience.taking, taken).await??;
        piece.clear();
    }
    tokio::time::timeout(patience.taking, to.shutdown()).await?
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(20);

    /// A program inside that was stopped: it says nothing, and what is sent to it piles up in a
    /// small place, whose other end is returned.
    fn stopped() -> (Dialed, DuplexStream) {
        let (input, inside) = duplex(16);
        let streams = Attached {
            output: Box::pin(stream::pending()),
            input: Box::pin(input),
        };
        let early = Bytes::from_static(b"early");
        (Dialed { streams, early }, inside)
    }

    #[tokio::test]
    async fn a_program_that_takes_nothing_any_more_is_given_up() {
        let (dialed, _inside) = stopped();
        let (ours, mut caller) = duplex(1024);
        caller.write_all(&[0; 100]).await.unwrap();
        let patience = Patience {
            taking: SHORT,
            silence: LONG,
        };
        join(dialed, ours, patience).await;
        let mut said = Vec::new();
        caller.read_to_end(&mut said).await.unwrap();
        assert_eq!(said, b"early");
    }

    #[tokio::test]
    async fn a_program_that_is_silent_after_all_was_said_is_given_up() {
        let (dialed, mut inside) = stopped();
        let (ours, mut caller) = duplex(1024);
        caller.write_all(b"all").await.unwrap();
        caller.shutdown().await.unwrap();
        let patience = Patience {
            taking: LONG,
            silence: SHORT,
        };
        join(dialed, ours, patience).await;
        let mut got = Vec::new();
        inside.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"all");
    }

    #[tokio::test]
    async fn a_silent_program_is_waited_for_while_our_end_is_open() {
        let (dialed, _inside) = stopped();
        let (ours, _caller) = duplex(1024);
        let patience = Patience {
            taking: SHORT,
            silence: SHORT,
        };
        let joined = tokio::time::timeout(5 * SHORT, join(dialed, ours, patience)).await;
        assert!(
            joined.is_err(),
            "a connection that is only silent was closed"
        );
    }
}
