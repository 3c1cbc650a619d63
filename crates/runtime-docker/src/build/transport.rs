//! The ways on which requests of the builder reach an Engine.

use std::{error::Error, io, path::Path, pin::Pin, time::Duration};

use bollard::errors::Error as Reply;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use http::{HeaderName, Method, Request, StatusCode, header::CONTENT_TYPE};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, BodyStream, Empty, StreamBody};
use reqwest::{Certificate, Client, Identity, Url};

use super::BuildError;
use crate::{
    EngineAddress, EngineError, TlsFiles,
    engine::{SSH_ENGINE, SentBody, SshHttp},
};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// What a context is.
const ARCHIVE: (HeaderName, &str) = (CONTENT_TYPE, "application/x-tar");

/// Bytes on their way.
pub(super) type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// A way to an Engine. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    way: Way,
    base: Url,
}

#[derive(Clone, Debug)]
enum Way {
    Direct(Client),
    Ssh(SshHttp),
}

/// The beginning of an answer, and the rest as it comes.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Pieces,
}

impl Transport {
    pub(super) fn new(address: &EngineAddress) -> Result<Self, BuildError> {
        let (way, base) = match address {
            EngineAddress::Unix(path) => {
                let client = builder().unix_socket(path.as_path());
                (direct(client)?, "http://engine".to_owned())
            }
            EngineAddress::Tcp { address, tls: None } => {
                (direct(builder())?, format!("http://{address}"))
            }
            EngineAddress::Tcp {
                address,
                tls: Some(files),
            } => {
                let client = with_tls(builder(), files)?;
                (direct(client)?, format!("https://{address}"))
            }
            EngineAddress::Ssh(host) => (Way::Ssh(SshHttp::new(host)), SSH_ENGINE.to_owned()),
        };
        let base = Url::parse(&base).map_err(|error| {
            BuildError::invalid(format!("`{base}` is no address of an Engine: {error}"))
        })?;
        Ok(Self { way, base })
    }

    /// The address of something that the Engine has.
    pub(super) fn url(&self, path: &str, query: &[(&str, String)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Sends a request once. Dropping the future, or the body of the answer, closes the
    /// connection, at which the Engine gives up what it does for it.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        context: Option<Pieces>,
    ) -> Result<Answer, Reply> {
        match &self.way {
            Way::Direct(client) => {
                let mut request = client.request(method, url);
                if let Some(context) = context {
                    let (name, value) = ARCHIVE;
                    let body = reqwest::Body::wrap_stream(context);
                    request = request.header(name, value).body(body);
                }
                let answer = http::Response::from(request.send().await.map_err(broken)?);
                Ok(Answer::of(answer))
            }
            Way::Ssh(ssh) => {
                let mut request = Request::builder().method(method).uri(url.as_str());
                if context.is_some() {
                    let (name, value) = ARCHIVE;
                    request = request.header(name, value);
                }
                let body: SentBody = match context {
                    Some(pieces) => StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync(),
                    None => Empty::new().map_err(|never| match never {}).boxed_unsync(),
                };
                let request = request.body(body).map_err(io::Error::other)?;
                Ok(Answer::of(ssh.send(request).await?))
            }
        }
    }
}

impl Answer {
    fn of<B>(answer: http::Response<B>) -> Self
    where
        B: Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Send + Unpin + 'static,
    {
        let (head, body) = answer.into_parts();
        // What comes after the body is nothing that the Engine sends.
        let pieces = BodyStream::new(body)
            .try_filter_map(|frame| std::future::ready(Ok(frame.into_data().ok())))
            .map_err(io::Error::other);
        Self {
            status: head.status,
            body: Box::pin(pieces),
        }
    }
}

fn builder() -> reqwest::ClientBuilder {
    provide_cryptography();
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        // A connection on which a build was given up is not used again, and none is kept.
        .pool_max_idle_per_host(0)
}

fn direct(builder: reqwest::ClientBuilder) -> Result<Way, BuildError> {
    let client = builder.build();
    let client = client.map_err(|error| EngineError::new("be asked", broken(error)))?;
    Ok(Way::Direct(client))
}

fn broken(error: reqwest::Error) -> Reply {
    if error.is_timeout() {
        Reply::RequestTimeoutError
    } else {
        Reply::from(io::Error::other(error))
    }
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
