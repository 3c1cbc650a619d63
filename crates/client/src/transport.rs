//! How another server is reached: with limits on what comes back, without redirects, and with a
//! key that goes to one origin only.

use std::{fmt, path::PathBuf, time::Duration};

use bytes::{Bytes, BytesMut};
use reqwest::{ClientBuilder, Response, Url, header::HeaderValue, redirect::Policy};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A secret that opens another server. It is sent and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// Takes a key over; `None` when it is empty or no header could carry it.
    pub fn new(key: &str) -> Option<Self> {
        let mut header = HeaderValue::from_str(key).ok()?;
        header.set_sensitive(true);
        (!key.is_empty()).then_some(Self(header))
    }

    /// The key as the value of a header, marked as sensitive.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

/// Where a server is. It is for the operator to say, never for a user: it decides whom we talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `https://…` or `http://…`, with a slash at the end.
    Url(Url),
    /// A Unix socket of this machine.
    Unix(PathBuf),
}

/// Why a server cannot be reached at all.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` cannot be the address of a server: {problem}")]
pub struct InvalidAddress {
    /// What was given.
    pub address: String,
    /// What is wrong with it, or with our means to reach it.
    pub problem: String,
}

impl Address {
    /// Reads `https://…`, `http://…` or `unix:/path`.
    ///
    /// # Errors
    /// When it is none of these, or contains secrets.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(InvalidAddress {
                address: text.to_owned(),
                problem: "the path of a socket begins with `/`".to_owned(),
            }),
            None => web_address(text).map(Self::Url),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(formatter, "{url}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// Reads an address of the web to which paths can be appended.
///
/// # Errors
/// When it is another, or contains secrets.
pub fn web_address(text: &str) -> Result<Url, InvalidAddress> {
    let wrong = |problem: &str| InvalidAddress {
        address: text.to_owned(),
        problem: problem.to_owned(),
    };
    let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not contain a name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it must not contain `?` or `#`"));
    }
    // A base without a slash would lose its last part.
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// A builder of clients that follow nothing, unpack nothing, repeat nothing and ask the
/// environment for nothing by themselves, whatever other crates of a program switch on.
pub fn builder() -> ClientBuilder {
    provide_cryptography();
    reqwest::Client::builder()
        .user_agent(concat!("zareba/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
}

/// The program chooses its cryptography before anything else; this is for those without it.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Why an answer could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The connection broke.
    #[error("the connection broke before the answer was complete")]
    Broken(#[source] reqwest::Error),
    /// The answer is larger than is taken.
    #[error("the answer is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Reads an answer whole, as long as it is not larger than `limit`.
///
/// # Errors
/// When it is, or the connection breaks.
pub async fn read_whole(mut response: Response, limit: usize) -> Result<Bytes, ReadError> {
    let mut document = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(ReadError::Broken)? {
        if document.len() + piece.len() > limit {
            return Err(ReadError::TooLarge { limit });
        }
        document.extend_from_slice(&piece);
    }
    Ok(document.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_web_addresses_without_secrets_or_sockets() {
        for (text, expected) in [
            ("https://a.example", Some("https://a.example/")),
            (
                "http://127.0.0.1:7070/api",
                Some("http://127.0.0.1:7070/api/"),
            ),
            ("unix:/run/zareba.sock", Some("unix:/run/zareba.sock")),
            ("unix:zareba.sock", None),
            ("ftp://a.example", None),
            ("https://user:password@a.example", None),
            ("https://a.example/?key=1", None),
            ("a.example", None),
            ("", None),
        ] {
            let found = Address::parse(text).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_key_never_shows() {
        assert_eq!(
            format!("{:?}", ApiKey::new("swordfish").unwrap()),
            "ApiKey(..)"
        );
        assert!(ApiKey::new("").is_none());
        assert!(ApiKey::new("a\nb").is_none());
    }
}
