//! What the builder asks of the Engine by itself.
//!
//! The client that all else goes through takes BuildKit's answers for broken ones, and knows one
//! name for an image. Everything here is sent once: what makes something is never repeated.

use std::{fs::File, io, path::Path, time::Duration};

use bollard::errors::Error as Reply;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use reqwest::{Body, Certificate, Client, Identity, Method, RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use super::{BuildError, BuildEvent, BuildListener, progress::Reading};
use crate::{
    EngineAddress, EngineError, EngineFault, TlsFiles,
    engine::{Engine, SshHost},
};

/// How long the Engine may take for an answer of one piece.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How long removing from the cache may take.
const PRUNE_MAX: Duration = Duration::from_secs(10 * 60);
/// The longest line of an answer, and the longest answer of one piece.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the context that are read at once.
const PIECE_BYTES: usize = 128 * 1024;
/// The first version that has BuildKit.
const BUILDKIT_SINCE: (u32, u32) = (1, 39);

/// A way to the Engine for builds.
#[derive(Clone, Debug)]
pub(super) struct EngineHttp {
    client: Client,
    base: Url,
}

impl EngineHttp {
    pub(super) fn new(address: &EngineAddress) -> Result<Self, BuildError> {
        provide_cryptography();
        let builder = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            // A connection on which a build was given up is not used again, and none is kept.
            .pool_max_idle_per_host(0);
        let (builder, base) = match address {
            EngineAddress::Unix(path) => (
                builder.unix_socket(path.as_path()),
                "http://engine".to_owned(),
            ),
            EngineAddress::Tcp { address, tls: None } => (builder, format!("http://{address}")),
            EngineAddress::Tcp {
                address,
                tls: Some(files),
            } => (with_tls(builder, files)?, format!("https://{address}")),
            EngineAddress::Ssh(SshHost { host, .. }) => {
                let reason = format!(
                    "images cannot be built over ssh, on `{host}`: build there, or forward the \
                     Engine's socket to this machine and name that"
                );
                return Err(BuildError::invalid(reason));
            }
        };
        let client = builder
            .build()
            .map_err(|error| unreachable("be asked", error))?;
        let base = Url::parse(&base).map_err(|error| {
            BuildError::invalid(format!("`{base}` is no address of an Engine: {error}"))
        })?;
        Ok(Self { client, base })
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client.request(method, url)
    }

    /// What the Engine knows of something; None when it is not there.
    pub(super) async fn get(&self, deed: &str, path: &str) -> Result<Option<Value>, BuildError> {
        let request = self.request(Method::GET, path, &[]).timeout(DEADLINE);
        match self.answer(deed, request).await {
            Err(BuildError::Engine(error)) if error.fault == EngineFault::Missing => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Removes from the cache of builds.
    pub(super) async fn prune(&self, query: &[(&str, String)]) -> Result<Value, BuildError> {
        let request = self.request(Method::POST, "/build/prune", query);
        let deed = "remove from the cache of builds";
        self.answer(deed, request.timeout(PRUNE_MAX)).await
    }

    /// Builds an image and tells all of it. Dropping the future closes the connection, at which
    /// the Engine gives the build up.
    pub(super) async fn build(
        &self,
        query: &[(&str, String)],
        (context, length): (File, u64),
        listener: &BuildListener,
    ) -> Result<(), BuildError> {
        let deed = "build an image";
        let body = Body::wrap_stream(pieces(context, length, listener.clone()));
        let request = self
            .request(Method::POST, "/build", query)
            .header("content-type", "application/x-tar")
            .body(body);
        let sent = request.send().await;
        let mut response = self
            .accepted(deed, sent.map_err(|it| unreachable(deed, it))?)
            .await?;
        let mut reading = Reading::new(listener.clone());
        let mut lines = Lines::default();
        while let Some(piece) = response.chunk().await.map_err(|it| unreachable(deed, it))? {
            lines.take(&piece, |line| reading.line(line))?;
        }
        reading
            .end()
            .map_err(|(message, output)| BuildError::Failed { message, output })
    }

    async fn answer(&self, deed: &str, request: RequestBuilder) -> Result<Value, BuildError> {
        let sent = request.send().await.map_err(|it| unreachable(deed, it))?;
        let response = self.accepted(deed, sent).await?;
        let text = whole(deed, response).await?;
        serde_json::from_slice(&text)
            .map_err(|error| EngineError::new(deed, Reply::from(error)).into())
    }

    async fn accepted(&self, deed: &str, response: Response) -> Result<Response, BuildError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = whole(deed, response).await?;
        let parsed: Option<Value> = serde_json::from_slice(&text).ok();
        let message = parsed.as_ref().and_then(|it| it.get("message")?.as_str());
        let reply = Reply::DockerResponseServerError {
            status_code: status.as_u16(),
            message: message.map_or_else(|| status.to_string(), str::to_owned),
        };
        Err(EngineError::new(deed, reply).into())
    }
}

/// Whether an Engine has BuildKit.
pub(super) async fn has_buildkit(engine: &Engine) -> Result<bool, BuildError> {
    let version = engine.api_version().await?;
    let parts = version.split_once('.');
    let parts = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    Ok(parts.is_some_and(|version: (u32, u32)| version >= BUILDKIT_SINCE))
}

/// The context, piece by piece.
fn pieces(
    context: File,
    length: u64,
    listener: BuildListener,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let file = tokio::fs::File::from_std(context);
    stream::try_unfold((file, 0), move |(mut file, sent)| {
        let listener = listener.clone();
        async move {
            let mut piece = BytesMut::with_capacity(PIECE_BYTES);
            if file.read_buf(&mut piece).await? == 0 {
                return Ok(None);
            }
            let sent = sent + piece.len() as u64;
            listener(&BuildEvent::Sending {
                bytes: sent,
                of: length,
            });
            Ok(Some((piece.freeze(), (file, sent))))
        }
    })
}

/// Cuts an answer into its lines.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn take(&mut self, piece: &[u8], mut each: impl FnMut(&Value)) -> Result<(), BuildError> {
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.rest.extend_from_slice(part);
            if self.rest.len() > ANSWER_BYTES_MAX {
                return Err(too_long());
            }
            if parts.peek().is_some() {
                // What is no JSON is nothing that we know.
                if let Ok(line) = serde_json::from_slice(&self.rest) {
                    each(&line);
                }
                self.rest.clear();
            }
        }
        Ok(())
    }
}

async fn whole(deed: &str, mut response: Response) -> Result<Vec<u8>, BuildError> {
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|it| unreachable(deed, it))? {
        text.extend_from_slice(&piece);
        if text.len() > ANSWER_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(text)
}

fn too_long() -> BuildError {
    let reason = io::Error::other(format!(
        "it answers with more than {ANSWER_BYTES_MAX} bytes"
    ));
    EngineError::new("be understood", Reply::from(reason)).into()
}

fn unreachable(deed: &str, error: reqwest::Error) -> BuildError {
    let reply = if error.is_timeout() {
        Reply::RequestTimeoutError
    } else {
        Reply::from(io::Error::other(error))
    };
    EngineError::new(deed, reply).into()
}

fn with_tls(
    builder: reqwest::ClientBuilder,
    files: &TlsFiles,
) -> Result<reqwest::ClientBuilder, BuildError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            BuildError::invalid(format!("cannot read `{}`: {error}", path.display()))
        })
    };
    let unusable = |error: reqwest::Error| {
        BuildError::invalid(format!("the Engine's TLS files cannot be used: {error}"))
    };
    let authority = Certificate::from_pem_bundle(&read(&files.authority)?).map_err(unusable)?;
    let mut ours = read(&files.certificate)?;
    ours.push(b'\n');
    ours.extend(read(&files.key)?);
    let identity = Identity::from_pem(&ours).map_err(unusable)?;
    Ok(builder.tls_certs_only(authority).identity(identity))
}

/// The program chooses its cryptography before anything else; this is for those without it.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let text = b"{\"a\":1}\n{\"a\":2}\nno json\n{\"a\":3}\n{\"a\":4";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut numbers = Vec::new();
            for piece in text.chunks(size) {
                let each = |line: &Value| numbers.push(line["a"].as_u64().unwrap());
                lines.take(piece, each).unwrap();
            }
            assert_eq!(numbers, [1, 2, 3], "{size}");
        }
        let endless = vec![b'x'; ANSWER_BYTES_MAX + 1];
        assert!(Lines::default().take(&endless, |_| {}).is_err());
    }
}
