//! What the caller of a pull decides.

use std::{fmt, path::PathBuf, time::Duration};

use super::Platform;
use crate::Digest;

/// Sum of all compressed layers, unless the caller says otherwise.
const IMAGE_BYTES_MAX: u64 = 20 * 1024 * 1024 * 1024;

/// How an image is pulled.
#[derive(Clone)]
pub struct PullOptions<'a> {
    /// What the image must have been built for.
    pub platform: Platform,
    /// A file in the format of `~/.docker/config.json`, whose `auths` hold credentials. One that
    /// does not exist is the same as one without an entry for the registry.
    pub credentials: Option<PathBuf>,
    pub transport: Transport,
    /// The HTTP proxy on the way to everything but this machine. Its URL may hold a password.
    pub proxy: Option<String>,
    /// Most bytes that configuration and layers may have together, as they are transferred.
    pub image_bytes_max: u64,
    /// Says whether a layer is there already, by its digest without compression. It is then left
    /// out of the layout, as [`crate::ImageStore::import`] does not need it.
    pub have: Option<&'a (dyn Fn(&Digest) -> bool + Sync)>,
    pub patience: Patience,
}

impl PullOptions<'_> {
    /// For this machine's platform, without credentials, over TLS.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            platform: Platform::host(),
            credentials: None,
            transport: Transport::Secure,
            proxy: None,
            image_bytes_max: IMAGE_BYTES_MAX,
            have: None,
            patience: Patience::default(),
        }
    }
}

impl fmt::Debug for PullOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PullOptions")
            .field("platform", &self.platform)
            .field("credentials", &self.credentials)
            .field("transport", &self.transport)
            .field("proxy", &self.proxy.as_ref().map(|_| ".."))
            .field("image_bytes_max", &self.image_bytes_max)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// How a registry is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TLS with a certificate that this machine trusts. Only a registry on this machine's
    /// loopback, on another port than 443, is spoken to in the clear.
    Secure,
    /// In the clear, credentials included. Digests in the name still hold; a tag means whatever
    /// the network says.
    PlainHttp,
}

/// How long a pull waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// For the next byte.
    pub idle: Duration,
    /// Before the second try, and twice as long before the third; unless the registry says when.
    pub pause: Duration,
    /// Longest pause that a registry may ask for. Past it the pull fails and says so.
    pub pause_max: Duration,
    /// For everything together, so that a registry that sends byte after byte comes to an end.
    pub overall: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            pause: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
            overall: Duration::from_secs(6 * 60 * 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_password_never_shows_in_debug_output() {
        let options = PullOptions {
            proxy: Some("http://me:swordfish@proxy:3128".to_owned()),
            ..PullOptions::anonymous()
        };
        let shown = format!("{options:?}");
        assert!(shown.contains("proxy: Some"), "{shown}");
        assert!(!shown.contains("swordfish"), "{shown}");
    }
}
