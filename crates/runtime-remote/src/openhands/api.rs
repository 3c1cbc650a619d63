//! The remote runtime API, one method per request.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use zareba_client::{BackOff, transport::web_address};

use super::{
    OpenHandsOptions,
    found::{Found, RuntimeDocument, State},
};
use crate::{
    ApiKey, InvalidAddress,
    http::{DOCUMENT_BYTES_MAX, Http, document},
    link::LinkError,
};

/// How often a request is sent that may be sent again.
const TRIES_MAX: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// One server that speaks the API.
#[derive(Debug)]
pub(super) struct Api {
    base: Url,
    key: ApiKey,
    timeout: Duration,
    sandbox_hosts: Vec<String>,
    pub(super) http: Http,
}

/// The body of `/start`.
#[derive(Debug, Serialize)]
pub(super) struct StartRequest {
    pub(super) session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image: Option<String>,
    pub(super) command: Vec<String>,
    pub(super) working_dir: &'static str,
    pub(super) environment: Map<String, Value>,
    pub(super) resource_factor: u32,
}

/// Whether a sandbox is there yet, in the API's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pod {
    Ready,
    NotYet,
    Failed,
}

#[derive(Deserialize)]
struct PodDocument {
    runtime_id: String,
    pod_status: String,
}

#[derive(Deserialize)]
struct ListDocument {
    runtimes: Vec<RuntimeDocument>,
}

impl Api {
    pub(super) fn new(options: &OpenHandsOptions, http: Http) -> Result<Self, InvalidAddress> {
        Ok(Self {
            base: web_address(&options.api_url)?,
            key: options.api_key.clone(),
            timeout: options.api_timeout,
            sandbox_hosts: options.sandbox_hosts.clone(),
            http,
        })
    }

    /// Starts the sandbox of a name. A start whose answer is lost is looked for and not repeated.
    pub(super) async fn start(&self, request: &StartRequest) -> Result<Found, LinkError> {
        let send = || self.request(Method::POST, "start").json_body(request);
        let started: Result<RuntimeDocument, _> = self.ask_when_harmless(send).await;
        match started {
            Ok(started) => Ok(started.into()),
            Err(error @ (LinkError::Timeout { .. } | LinkError::Unreachable { .. })) => {
                match self.session(&request.session_id).await {
                    Ok(Some(found)) if found.state != State::Ended => Ok(found),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The sandbox of a name, if there is one.
    pub(super) async fn session(&self, name: &str) -> Result<Option<Found>, LinkError> {
        let path = format!("sessions/{name}");
        let found: Result<RuntimeDocument, _> = self.ask(|| self.request(Method::GET, &path)).await;
        match found {
            Ok(found) => Ok(Some(found.into())),
            Err(LinkError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How far a sandbox is.
    pub(super) async fn pod(&self, runtime_id: &str) -> Result<Pod, LinkError> {
        let mut url = self.url("runtime");
        append(&mut url, runtime_id)?;
        let request = || self.keyed(self.http.requests.get(url.clone()));
        let found: PodDocument = self.ask(request).await?;
        if found.runtime_id != runtime_id {
            return Err(LinkError::Nonsense {
                problem: "it tells of another sandbox".to_owned(),
            });
        }
        Ok(match found.pod_status.to_ascii_lowercase().as_str() {
            "ready" => Pod::Ready,
            "failed" | "unknown" | "crashloopbackoff" => Pod::Failed,
            _ => Pod::NotYet,
        })
    }

    pub(super) async fn list(&self) -> Result<Vec<Found>, LinkError> {
        let found: ListDocument = self.ask(|| self.request(Method::GET, "list")).await?;
        Ok(found.runtimes.into_iter().map(Found::from).collect())
    }

    pub(super) async fn pause(&self, runtime_id: &str) -> Result<(), LinkError> {
        self.order("pause", runtime_id).await
    }

    pub(super) async fn resume(&self, runtime_id: &str) -> Result<(), LinkError> {
        self.order("resume", runtime_id).await
    }

    /// One that is not there is stopped.
    pub(super) async fn stop(&self, runtime_id: &str) -> Result<(), LinkError> {
        match self.order("stop", runtime_id).await {
            Err(LinkError::Refused { status: 404, .. }) => Ok(()),
            result => result,
        }
    }

    /// Where a sandbox is, if that is a place that the operator trusts. The server says where, and
    /// a hostile one could send us anywhere.
    pub(super) fn trusted(&self, text: &str) -> Result<Url, LinkError> {
        let refused = |problem: String| LinkError::Invalid { problem };
        let url = web_address(text).map_err(|error| refused(error.to_string()))?;
        if self.base.scheme() == "https" && url.scheme() != "https" {
            let problem = format!("the server placed a sandbox at `{text}`, without TLS");
            return Err(refused(problem));
        }
        let host = url.host_str().unwrap_or_default();
        let own = self.base.host_str().unwrap_or_default();
        let is_listed = self
            .sandbox_hosts
            .iter()
            .any(|listed| match listed.strip_prefix('.') {
                Some(domain) => is_below(host, domain),
                None => host.eq_ignore_ascii_case(listed),
            });
        if host == own || is_below(host, own) || is_listed {
            return Ok(url);
        }
        Err(refused(format!(
            "the server placed a sandbox on the host `{host}`, which is not its own: list it \
             among the hosts for sandboxes if it is to be trusted"
        )))
    }

    async fn order(&self, verb: &str, runtime_id: &str) -> Result<(), LinkError> {
        let body = json!({ "runtime_id": runtime_id });
        let request = || self.request(Method::POST, verb).json_body(&body);
        let _: Value = self.ask(request).await?;
        Ok(())
    }

    fn url(&self, path: &str) -> Url {
        // Paths are written by this module; one that cannot be joined leaves the base.
        self.base.join(path).unwrap_or_else(|_| self.base.clone())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.keyed(self.http.requests.request(method, self.url(path)))
    }

    fn keyed(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("x-api-key", self.key.header())
    }

    /// Sends a request that may be sent again.
    async fn ask<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<T, LinkError> {
        self.ask_while(request, |error| error.class().is_retryable())
            .await
    }

    /// Sends a request that is sent again only when it has not arrived.
    async fn ask_when_harmless<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<T, LinkError> {
        self.ask_while(request, |error| {
            error.class().is_retryable() && error.is_harmless()
        })
        .await
    }

    async fn ask_while<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> RequestBuilder,
        may_try_again: impl Fn(&LinkError) -> bool,
    ) -> Result<T, LinkError> {
        let mut back_off = BackOff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut tries = 1;
        loop {
            let answer = document(request(), self.timeout, DOCUMENT_BYTES_MAX).await;
            match answer {
                Ok(document) => return parse(&document),
                Err(error) if tries < TRIES_MAX && may_try_again(&error) => {
                    tracing::debug!(%error, tries, "a request is sent again");
                    tries += 1;
                    back_off.wait().await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// JSON without the client's own feature for it, which would hide why something cannot be written.
pub(super) trait JsonBody {
    fn json_body(self, body: &impl Serialize) -> Self;
}

impl JsonBody for RequestBuilder {
    fn json_body(self, body: &impl Serialize) -> Self {
        let text = serde_json::to_vec(body).unwrap_or_default();
        self.header("content-type", "application/json").body(text)
    }
}

pub(super) fn parse<T: DeserializeOwned>(document: &[u8]) -> Result<T, LinkError> {
    serde_json::from_slice(document).map_err(|error| LinkError::Nonsense {
        problem: error.to_string(),
    })
}

/// Adds one part to a path, whatever characters it has.
fn append(url: &mut Url, part: &str) -> Result<(), LinkError> {
    let mut parts = url.path_segments_mut().map_err(|()| LinkError::Invalid {
        problem: "the address of the API has no path".to_owned(),
    })?;
    parts.push(part);
    Ok(())
}

fn is_below(host: &str, domain: &str) -> bool {
    let is_name = domain.parse::<std::net::IpAddr>().is_err() && !domain.is_empty();
    let above = host.len().checked_sub(domain.len() + 1);
    is_name
        && above.is_some_and(|dot| {
            host.as_bytes().get(dot) == Some(&b'.')
                && host
                    .get(dot + 1..)
                    .is_some_and(|end| end.eq_ignore_ascii_case(domain))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(url: &str, hosts: &[&str]) -> Api {
        let mut options = OpenHandsOptions::new(url, ApiKey::new("k").unwrap());
        options.sandbox_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Api::new(&options, Http::new().unwrap()).unwrap()
    }

    #[test]
    fn sandboxes_are_reached_only_on_hosts_that_the_operator_trusts() {
        let own = api("https://api.example", &["other.example", ".pods.example"]);
        for (url, trusted) in [
            ("https://api.example/r", true),
            ("https://r.api.example", true),
            ("https://other.example", true),
            ("https://r.pods.example", true),
            ("https://pods.example", false),
            ("https://r.other.example", false),
            ("https://evilapi.example", false),
            ("http://api.example/r", false),
            ("https://169.254.169.254/latest", false),
            ("https://localhost", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(own.trusted(url).is_ok(), trusted, "{url}");
        }
        let here = api("http://127.0.0.1:8000", &[]);
        assert!(here.trusted("http://127.0.0.1:8000/sessions/x").is_ok());
        assert!(here.trusted("http://9.127.0.0.1:80/").is_err());
    }
}
