//! An Engine behind `ssh`, reached as the docker command does: each connection is a child process
//! `ssh HOST docker system dial-stdio`, whose streams carry HTTP.
//!
//! Connections are kept and used again, because each costs a login. A child belongs to its
//! connection: dropping that kills and reaps it. It never asks anybody for a password (there is
//! nobody to ask in a server); what it complains about becomes part of the error.

use std::{
    io,
    pin::Pin,
    process::Stdio,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker, errors::Error as Reply};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::watch,
};
use tower::Service;

use super::SshHost;

/// How long a login may take.
const LOGIN_SECONDS: u32 = 30;
/// How much of what `ssh` complains about is kept.
const COMPLAINTS_BYTES_MAX: u64 = 4096;
/// How long `ssh` may take to say why a connection was closed.
const EXPLAIN_MAX: Duration = Duration::from_secs(1);
/// Any name will do: the connection knows where it goes.
pub(crate) const ENGINE: &str = "http://engine";

/// A client of the Engine there. Nobody logs in before the first request.
pub(super) fn connect(host: &SshHost, seconds: u64) -> Result<Docker, Reply> {
    let dialer = Dialer::new(host);
    let complaints = dialer.complaints.clone();
    let client = Client::builder(TokioExecutor::new()).build(dialer);
    let transport = move |request: BollardRequest| {
        let (asked, complaints) = (client.request(request), complaints.clone());
        async move {
            match asked.await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(complaints.explain(Reply::from(error)).await),
            }
        }
    };
    Docker::connect_with_custom_transport(transport, Some(ENGINE), seconds, API_DEFAULT_VERSION)
}

/// What a request brings along.
pub(crate) type SentBody = UnsyncBoxBody<Bytes, io::Error>;

/// Requests of any kind to the same Engine, for whom bollard's calls are not enough.
#[derive(Clone, Debug)]
pub(crate) struct SshHttp {
    client: Client<Dialer, SentBody>,
    complaints: Complaints,
}

impl SshHttp {
    pub(crate) fn new(host: &SshHost) -> Self {
        let dialer = Dialer::new(host);
        Self {
            complaints: dialer.complaints.clone(),
            client: Client::builder(TokioExecutor::new()).build(dialer),
        }
    }

    /// Dropping the future, or the body of the answer, closes the connection.
    pub(crate) async fn send(
        &self,
        request: Request<SentBody>,
    ) -> Result<Response<Incoming>, Reply> {
        match self.client.request(request).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.complaints.explain(Reply::from(error)).await),
        }
    }
}

/// Opens a connection whenever one is needed.
#[derive(Clone, Debug)]
struct Dialer {
    host: Arc<SshHost>,
    complaints: Complaints,
}

impl Dialer {
    fn new(host: &SshHost) -> Self {
        Self {
            host: Arc::new(host.clone()),
            complaints: Complaints::default(),
        }
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<SshStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _address: Uri) -> Self::Future {
        let stream = SshStream::open(&self.host, &self.complaints);
        std::future::ready(stream.map(TokioIo::new))
    }
}

/// What the last `ssh` that failed has said.
#[derive(Clone, Debug, Default)]
struct Complaints(Arc<watch::Sender<String>>);

impl Complaints {
    /// Reads along until the child closes its error output.
    async fn listen(self, stderr: ChildStderr) {
        let mut said = Vec::new();
        let mut stderr = stderr.take(COMPLAINTS_BYTES_MAX);
        if stderr.read_to_end(&mut said).await.is_ok() {
            // More of it is thrown away, so that the child never waits for a reader.
            let _ = tokio::io::copy(stderr.get_mut(), &mut tokio::io::sink()).await;
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        if !said.is_empty() {
            self.0.send_replace(said);
        }
    }

    /// A better reason than that a connection was closed, where there is one. It may be told a
    /// moment after the connection was.
    async fn explain(&self, error: Reply) -> Reply {
        let mut said = self.0.subscribe();
        let told = said.wait_for(|said| !said.is_empty());
        if !matches!(tokio::time::timeout(EXPLAIN_MAX, told).await, Ok(Ok(_))) {
            return error;
        }
        let said = self.0.send_replace(String::new());
        Reply::from(io::Error::other(format!("ssh said: {said}")))
    }
}

/// The streams of a child, and the child.
#[derive(Debug)]
struct SshStream {
    /// None once our end is closed: that is how the other end hears of it.
    input: Option<ChildStdin>,
    output: ChildStdout,
    _child: Child,
}

impl SshStream {
    fn open(host: &SshHost, complaints: &Complaints) -> io::Result<Self> {
        let mut child = command(host)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // What a terminal sends to us is not meant for it.
            .process_group(0)
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot start ssh: {error}")))?;
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stderr = child.stderr.take().ok_or_else(missing)?;
        tokio::spawn(complaints.clone().listen(stderr));
        Ok(Self {
            input: Some(child.stdin.take().ok_or_else(missing)?),
            output: child.stdout.take().ok_or_else(missing)?,
            _child: child,
        })
    }
}

fn command(host: &SshHost) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-o", "BatchMode=yes"]);
    command.args(["-o", &format!("ConnectTimeout={LOGIN_SECONDS}")]);
    if let Some(user) = &host.user {
        command.args(["-l", user]);
    }
    if let Some(port) = host.port {
        command.args(["-p", &port.to_string()]);
    }
    command.args(["--", &host.host, "docker"]);
    if let Some(socket) = &host.socket {
        command.arg(format!("--host=unix://{socket}"));
    }
    command.args(["system", "dial-stdio"]);
    command
}

impl AsyncRead for SshStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().output).poll_read(context, buffer)
    }
}

impl AsyncWrite for SshStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().input {
            Some(input) => Pin::new(input).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().input {
            Some(input) => Pin::new(input).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().input = None;
        Poll::Ready(Ok(()))
    }
}

impl Connection for SshStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_what_the_docker_command_runs() {
        let line = |host: &SshHost| {
            let command = command(host);
            let arguments = command.as_std().get_args();
            let arguments: Vec<_> = arguments.map(|it| it.to_string_lossy()).collect();
            arguments.join(" ")
        };
        let mut host = SshHost {
            user: None,
            host: "far".to_owned(),
            port: None,
            socket: None,
        };
        assert_eq!(
            line(&host),
            "-T -o BatchMode=yes -o ConnectTimeout=30 -- far docker system dial-stdio"
        );
        host.user = Some("me".to_owned());
        host.port = Some(2222);
        host.socket = Some("/run/s".to_owned());
        assert_eq!(
            line(&host),
            "-T -o BatchMode=yes -o ConnectTimeout=30 -l me -p 2222 -- far docker \
             --host=unix:///run/s system dial-stdio"
        );
    }
}
