//! [`Client`]: one server and the key to it, and what the server tells of itself.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use zareba_api::{Limits, Readiness, RuntimePage, SURFACE, ServerStatus, operations::service};

use crate::{
    Address, ApiKey, ClientError, InvalidAddress,
    ask::Ask,
    transport::{self, web_address},
};

/// A stream that is silent for so long is broken: servers fill silence with comments.
const STREAM_SILENCE_MAX: Duration = Duration::from_secs(60);

/// A client of one server. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    place: String,
    key: ApiKey,
    surface: Option<&'static str>,
    requests: reqwest::Client,
    streams: reqwest::Client,
}

impl Client {
    /// Connects when the first request is made.
    ///
    /// # Errors
    /// When requests cannot be made at all, for instance because the machine has no certificates
    /// of authorities.
    pub fn new(address: Address, key: ApiKey) -> Result<Self, InvalidAddress> {
        let place = address.to_string();
        let failed = |error: reqwest::Error| InvalidAddress {
            address: place.clone(),
            problem: format!("requests cannot be made: {error}"),
        };
        let builder = || match &address {
            Address::Url(_) => transport::builder(),
            Address::Unix(path) => transport::builder().unix_socket(path.as_path()),
        };
        let requests = builder().build().map_err(failed)?;
        let streams = builder().read_timeout(STREAM_SILENCE_MAX).build();
        let streams = streams.map_err(failed)?;
        let base = match address {
            Address::Url(url) => url,
            Address::Unix(_) => web_address("http://localhost/")?,
        };
        Ok(Self {
            base,
            place,
            key,
            surface: None,
            requests,
            streams,
        })
    }

    /// The same client, which says through what it is used, such as `mcp`: logs of sessions name that.
    #[must_use]
    pub fn used_through(self, surface: &'static str) -> Self {
        Self {
            surface: Some(surface),
            ..self
        }
    }

    /// Whether sessions can be made and used.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn ready(&self) -> Result<Readiness, ClientError> {
        self.ask_for(Ask::new(self, &service::READY, &[])?).await
    }

    /// How the server is.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn status(&self) -> Result<ServerStatus, ClientError> {
        self.ask_for(Ask::new(self, &service::STATUS, &[])?).await
    }

    /// The runtimes that sessions may choose from.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn runtimes(&self) -> Result<RuntimePage, ClientError> {
        self.ask_for(Ask::new(self, &service::RUNTIMES, &[])?).await
    }

    /// What a client may use up.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn limits(&self) -> Result<Limits, ClientError> {
        self.ask_for(Ask::new(self, &service::LIMITS, &[])?).await
    }

    /// Where the server is, for people.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The address of a path whose braces are filled with `parts` in order.
    pub(crate) fn url(&self, path: &str, parts: &[&str]) -> Result<Url, ClientError> {
        let mut parts = parts.iter();
        let mut url = self.base.clone();
        let mut missing = false;
        {
            let mut segments = url.path_segments_mut().map_err(|()| ClientError::Invalid {
                problem: "the server's address has no path".to_owned(),
            })?;
            segments.pop_if_empty();
            for segment in path.split('/').filter(|segment| !segment.is_empty()) {
                if !segment.starts_with('{') {
                    segments.push(segment);
                    continue;
                }
                match parts.next() {
                    // Dots would be taken for steps up.
                    Some(part) if !matches!(*part, "" | "." | "..") => {
                        segments.push(part);
                    }
                    _ => missing = true,
                }
            }
        }
        if missing || parts.next().is_some() {
            return Err(ClientError::Invalid {
                problem: format!("the path `{path}` cannot be filled in"),
            });
        }
        Ok(url)
    }

    /// A request with the key. It goes to the server's own origin, since `url` is made from it.
    pub(crate) fn keyed(&self, method: Method, url: Url) -> RequestBuilder {
        self.introduced(self.requests.request(method, url))
    }

    /// The same for an answer that comes piece by piece.
    pub(crate) fn streamed(&self, method: Method, url: Url) -> RequestBuilder {
        self.introduced(self.streams.request(method, url))
    }

    fn introduced(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.header("x-api-key", self.key.header());
        match self.surface {
            Some(surface) => request.header(SURFACE, surface),
            None => request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_filled_below_the_base_and_nowhere_else() {
        let address = Address::parse("https://a.example/base").unwrap();
        let client = Client::new(address, ApiKey::new("k").unwrap()).unwrap();
        let filled = |parts: &[&str]| {
            let url = client.url("/v1/sessions/{session}/actions/{action}", parts);
            url.ok().map(|url| url.to_string())
        };
        let expected = "https://a.example/base/v1/sessions/a/actions/7";
        assert_eq!(filled(&["a", "7"]).as_deref(), Some(expected));
        let odd = filled(&["a/../b?c#d", "7"]).unwrap();
        assert!(
            odd.ends_with("/sessions/a%2F..%2Fb%3Fc%23d/actions/7"),
            "{odd}"
        );
        for parts in [&["a"][..], &["a", "7", "x"], &["..", "7"], &["", "7"]] {
            assert_eq!(filled(parts), None, "{parts:?}");
        }
    }
}
