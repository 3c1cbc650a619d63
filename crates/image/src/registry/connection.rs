//! Requests to one registry: redirects, limits, and what an answer's status means.

use std::time::Duration;

use reqwest::{
    Client, Method, NoProxy, Proxy, Response, StatusCode, Url,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RANGE,
        RETRY_AFTER,
    },
    redirect::Policy,
};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    Part, PullError, PullOptions, Sought,
    address::{Address, host_of},
    challenge::Challenge,
    credentials::Credentials,
    error::{cause_of, shown},
};
use crate::ImageName;

/// Registries need one, sometimes two, to hand out a blob.
const REDIRECTS_MAX: usize = 5;
/// Of an error's body; what is shown of it is shorter still.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024;
/// What no proxy is asked for.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1";

/// The way to one repository.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) address: Address,
    /// What permission is asked for when the registry does not say.
    pub(super) scope: String,
    pub(super) credentials: Option<Credentials>,
    pub(super) sought: Sought,
    /// What the registry has last been satisfied with. Held while it is renewed, so that of
    /// several requests one asks for a new token.
    pub(super) authorization: Mutex<Option<HeaderValue>>,
}

/// One thing to get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) part: &'a Part,
    pub(super) url: &'a Url,
    pub(super) accept: &'static str,
    /// Bytes at the beginning that are there already.
    pub(super) skip: u64,
}

impl Connection {
    /// Sets everything up; nothing is sent yet.
    pub(super) fn new(name: &ImageName, options: &PullOptions<'_>) -> Result<Self, PullError> {
        let set_up = |problem: &str| PullError::SetUp {
            problem: problem.to_owned(),
        };
        let address = Address::new(name, options.transport)
            .ok_or_else(|| set_up("the registry's name is no host name"))?;
        let file = options.credentials.as_deref();
        let (credentials, sought) = Credentials::find(file, name.registry())?;
        Ok(Self {
            client: client(options)?,
            address,
            scope: format!("repository:{}:pull", name.repository()),
            credentials,
            sought,
            authorization: Mutex::new(None),
        })
    }

    /// One try: a successful answer, whose body has not been read.
    ///
    /// A registry that wants a permission is asked once more with one, also when there was one,
    /// which may have run out.
    pub(super) async fn get(&self, wanted: Wanted<'_>) -> Result<Response, PullError> {
        let used = self.authorization.lock().await.clone();
        let response = self.follow(wanted, used.as_ref()).await?;
        let is_asked_by_home =
            response.status() == StatusCode::UNAUTHORIZED && self.address.is_home(response.url());
        let response = match Challenge::read(response.headers()) {
            Some(challenge) if is_asked_by_home => {
                let renewed = self.renew(wanted.part, &challenge, used.as_ref()).await?;
                match renewed {
                    Some(renewed) => self.follow(wanted, Some(&renewed)).await?,
                    None => response,
                }
            }
            _ => response,
        };
        self.accepted(wanted.part, response).await
    }

    /// Goes where the registry points. Once that is elsewhere, the permission stays at home, even
    /// when the way leads back (RH-1).
    async fn follow(
        &self,
        wanted: Wanted<'_>,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, PullError> {
        let mut url = wanted.url.clone();
        let mut authorization = authorization;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(wanted, url.clone(), authorization).await?;
            let Some(location) = location(&response) else {
                return Ok(response);
            };
            url = self
                .address
                .redirect(&url, &location)
                .map_err(|forbidden| redirect(wanted.part, &forbidden.to_string()))?;
            authorization = authorization.filter(|_| self.address.is_home(&url));
            tracing::debug!(part = %wanted.part, to = %host_of(&url), "redirected");
        }
        Err(redirect(
            wanted.part,
            &format!("it has more than {REDIRECTS_MAX} redirects"),
        ))
    }

    async fn send(
        &self,
        wanted: Wanted<'_>,
        url: Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, PullError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(wanted.accept));
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        if wanted.skip > 0
            && let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", wanted.skip))
        {
            headers.insert(RANGE, range);
        }
        self.execute(wanted.part, url, headers).await
    }

    /// Sends one request, and follows nothing.
    pub(super) async fn execute(
        &self,
        part: &Part,
        url: Url,
        mut headers: HeaderMap,
    ) -> Result<Response, PullError> {
        // Digests are of what lies in the registry, not of what a transfer makes of it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let host = host_of(&url);
        let request = self.client.request(Method::GET, url).headers(headers);
        let response = request.send().await.map_err(|error| {
            let is_absent = error.is_connect() || error.is_timeout();
            let (part, source) = (part.clone(), cause_of(&error));
            if is_absent {
                PullError::Unreachable { part, host, source }
            } else {
                let received = 0;
                PullError::Interrupted {
                    part,
                    received,
                    source,
                }
            }
        })?;
        tracing::debug!(%part, host = %host_of(response.url()), status = %response.status(), "answered");
        Ok(response)
    }

    /// Turns every answer that is none into what it means.
    pub(super) async fn accepted(
        &self,
        part: &Part,
        response: Response,
    ) -> Result<Response, PullError> {
        let status = response.status();
        if matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Ok(response);
        }
        let (part, host) = (part.clone(), host_of(response.url()));
        let code = status.as_u16();
        Err(match code {
            401 | 403 => PullError::Unauthorized {
                part,
                host,
                status: code,
                sought: self.sought.clone(),
            },
            404 => PullError::NotFound { part, host },
            408 | 429 | 500..=599 => PullError::Busy {
                part,
                host,
                status: code,
                retry_after: retry_after(&response),
            },
            _ => PullError::Refused {
                message: message(&part, response).await,
                part,
                host,
                status: code,
            },
        })
    }
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read_body(
    part: &Part,
    mut response: Response,
    limit: u64,
) -> Result<Vec<u8>, PullError> {
    let too_large = || PullError::TooLarge {
        part: part.clone(),
        limit,
    };
    if response.content_length().is_some_and(|size| size > limit) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    loop {
        let received = body.len() as u64;
        let Some(piece) = response.chunk().await.map_err(broken(part, received))? else {
            return Ok(body);
        };
        if received.saturating_add(piece.len() as u64) > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
}

/// A connection that ended in the middle of a body.
pub(super) fn broken(part: &Part, received: u64) -> impl FnOnce(reqwest::Error) -> PullError {
    let part = part.clone();
    move |error| PullError::Interrupted {
        part,
        received,
        source: Box::new(error.without_url()),
    }
}

/// The one client of a pull. It follows nothing, unpacks nothing and asks the environment for
/// nothing by itself, whatever the other crates of the program switch on.
fn client(options: &PullOptions<'_>) -> Result<Client, PullError> {
    provide_cryptography();
    let mut builder = Client::builder()
        .user_agent(concat!("zareba/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .no_proxy()
        .connect_timeout(options.patience.connect)
        .read_timeout(options.patience.idle);
    if let Some(proxy) = &options.proxy {
        // The error would show the URL, which may have a password.
        let proxy = Proxy::all(proxy).map_err(|_| PullError::SetUp {
            problem: "the proxy's address is not a URL".to_owned(),
        })?;
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(THIS_MACHINE)));
    }
    builder.build().map_err(|error| PullError::SetUp {
        problem: format!(
            "{}; TLS needs the certificates of authorities, which are often in a package called \
             `ca-certificates`",
            chain(&error)
        ),
    })
}

/// The program chooses its cryptography before anything else. This is for those who use the crate
/// without it, and changes nothing when a choice was made.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// An error with its causes, for the places that keep a text.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

fn redirect(part: &Part, problem: &str) -> PullError {
    PullError::Redirect {
        part: part.clone(),
        problem: problem.to_owned(),
    }
}

/// Where an answer sends us, if it does. Statuses that allow a choice are not followed.
fn location(response: &Response) -> Option<String> {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308).then_some(())?;
    let location = response.headers().get(LOCATION)?;
    Some(location.to_str().ok()?.to_owned())
}

/// In seconds; registries do not use the form with a date.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(value.trim().parse().ok()?))
}

/// What the registry says is wrong, in the format that the protocol has for it.
async fn message(part: &Part, response: Response) -> String {
    #[derive(Deserialize)]
    struct Failures {
        errors: Vec<Failure>,
    }
    #[derive(Deserialize)]
    struct Failure {
        message: String,
    }
    let status = response.status();
    let body = read_body(part, response, MESSAGE_BYTES_MAX).await;
    let first = body.ok().and_then(|body| {
        let failures: Failures = serde_json::from_slice(&body).ok()?;
        failures.errors.into_iter().next()
    });
    match first {
        Some(failure) => shown(&failure.message),
        None => status
            .canonical_reason()
            .unwrap_or("no reason given")
            .to_owned(),
    }
}
