//! Where a registry is, and where it may send us.

use std::net::IpAddr;

use reqwest::Url;

use super::Transport;
use crate::{Digest, ImageName};

/// The addresses of one repository of one registry, and the rule that every other address is held
/// against.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// `https://images.example:5000/v2/library/debian`
    repository: Url,
    transport: Transport,
}

/// Why an address is not gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Forbidden {
    #[error("it is not an address")]
    NotAnAddress,
    #[error("it leads out of TLS")]
    LeavesTls,
    #[error("it is neither `https` nor on this machine's loopback")]
    NotSecure,
    #[error("it has credentials in it")]
    HasCredentials,
}

impl Address {
    /// `None` when the name's host is not one that can be part of a URL.
    pub(super) fn new(name: &ImageName, transport: Transport) -> Option<Self> {
        let host = name.api_host();
        let mut repository = Url::parse(&format!("https://{host}/v2/")).ok()?;
        let is_in_the_clear = match transport {
            Transport::PlainHttp => true,
            // 443 is the default, so that it says that TLS is spoken there.
            Transport::Secure => is_loopback(&repository) && !host.ends_with(":443"),
        };
        if is_in_the_clear {
            repository = Url::parse(&format!("http://{host}/v2/")).ok()?;
        }
        repository
            .path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(name.repository().split('/'));
        Some(Self {
            repository,
            transport,
        })
    }

    pub(super) fn manifest(&self, reference: &str) -> Url {
        self.below(["manifests", reference])
    }

    pub(super) fn blob(&self, digest: &Digest) -> Url {
        self.below(["blobs", &digest.to_string()])
    }

    fn below(&self, segments: [&str; 2]) -> Url {
        let mut url = self.repository.clone();
        // An `http` URL always has a path, so that this never fails.
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        url
    }

    /// Whether credentials for the registry may go to `url` (RH-1).
    pub(super) fn is_home(&self, url: &Url) -> bool {
        url.origin() == self.repository.origin()
    }

    /// Where a redirect leads that came from `from`.
    pub(super) fn redirect(&self, from: &Url, location: &str) -> Result<Url, Forbidden> {
        let url = from.join(location).map_err(|_| Forbidden::NotAnAddress)?;
        self.checked(from, url)
    }

    /// The token service that the registry names.
    pub(super) fn realm(&self, realm: &str) -> Result<Url, Forbidden> {
        let url = Url::parse(realm).map_err(|_| Forbidden::NotAnAddress)?;
        self.checked(&self.repository, url)
    }

    /// A step may keep TLS or gain it, never lose it, and goes in the clear only where the caller
    /// has said so or where no wire is involved.
    fn checked(&self, from: &Url, url: Url) -> Result<Url, Forbidden> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Forbidden::HasCredentials);
        }
        match (url.scheme(), from.scheme(), self.transport) {
            ("https", _, _) => Ok(url),
            ("http", "https", _) => Err(Forbidden::LeavesTls),
            ("http", _, Transport::PlainHttp) => Ok(url),
            ("http", _, Transport::Secure) if is_loopback(&url) => Ok(url),
            _ => Err(Forbidden::NotSecure),
        }
    }
}

/// Host and port of any address, without what else may be in it.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(name: &str, transport: Transport) -> Address {
        Address::new(&ImageName::parse(name).unwrap(), transport).unwrap()
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear_rh_1() {
        for (name, url) in [
            ("ghcr.io/a/b:1", "https://ghcr.io/v2/a/b/manifests/1"),
            (
                "images.example:80/a",
                "https://images.example:80/v2/a/manifests/latest",
            ),
            (
                "localhost.example.com/a",
                "https://localhost.example.com/v2/a/manifests/latest",
            ),
            (
                "localhost:5000/a",
                "http://localhost:5000/v2/a/manifests/latest",
            ),
            (
                "127.3.2.1:5000/a",
                "http://127.3.2.1:5000/v2/a/manifests/latest",
            ),
            ("[::1]:5000/a", "http://[::1]:5000/v2/a/manifests/latest"),
            ("localhost:443/a", "https://localhost/v2/a/manifests/latest"),
            (
                "10.0.0.1:5000/a",
                "https://10.0.0.1:5000/v2/a/manifests/latest",
            ),
        ] {
            let parsed = ImageName::parse(name).unwrap();
            let address = Address::new(&parsed, Transport::Secure).unwrap();
            assert_eq!(address.manifest(&parsed.reference()).as_str(), url);
        }
        let default = address("debian", Transport::Secure).manifest("latest");
        assert_eq!(default.scheme(), "https");
        assert_eq!(default.host_str(), Some("registry-1.docker.io"));
        assert_eq!(default.path(), "/v2/library/debian/manifests/latest");
        let plain = address("images.example/a", Transport::PlainHttp);
        assert_eq!(
            plain.manifest("1").as_str(),
            "http://images.example/v2/a/manifests/1"
        );
    }

    #[test]
    fn a_reference_stays_one_segment_of_the_path() {
        let url = address("ghcr.io/a", Transport::Secure).manifest("../../x?y#z");
        assert_eq!(
            url.as_str(),
            "https://ghcr.io/v2/a/manifests/..%2F..%2Fx%3Fy%23z"
        );
    }

    #[test]
    fn a_redirect_never_leaves_tls_and_never_carries_credentials_rh_1() {
        let secure = address("ghcr.io/a", Transport::Secure);
        let local = address("localhost:5000/a", Transport::Secure);
        let plain = address("images.example/a", Transport::PlainHttp);
        for (address, location, expected) in [
            (
                &secure,
                "https://cdn.example/x",
                Ok("https://cdn.example/x"),
            ),
            (&secure, "/x", Ok("https://ghcr.io/x")),
            (&secure, "//cdn.example/x", Ok("https://cdn.example/x")),
            (&secure, "http://ghcr.io/x", Err(Forbidden::LeavesTls)),
            (&secure, "http://localhost/x", Err(Forbidden::LeavesTls)),
            (&secure, "ftp://ghcr.io/x", Err(Forbidden::NotSecure)),
            (&secure, "file:///etc/passwd", Err(Forbidden::NotSecure)),
            (&secure, "https://", Err(Forbidden::NotAnAddress)),
            (
                &secure,
                "https://a:b@ghcr.io/",
                Err(Forbidden::HasCredentials),
            ),
            (
                &secure,
                "https://a@ghcr.io/",
                Err(Forbidden::HasCredentials),
            ),
            (&local, "http://127.0.0.1:1/x", Ok("http://127.0.0.1:1/x")),
            (&local, "https://cdn.example/x", Ok("https://cdn.example/x")),
            (&local, "http://cdn.example/x", Err(Forbidden::NotSecure)),
            (&plain, "http://cdn.example/x", Ok("http://cdn.example/x")),
        ] {
            let from = address.manifest("latest");
            let found = address.redirect(&from, location);
            let found = found.as_ref().map(Url::as_str).map_err(|problem| *problem);
            assert_eq!(found, expected, "{location}");
        }
    }

    #[test]
    fn a_secure_registry_names_only_a_secure_token_service_rh_1() {
        let secure = address("ghcr.io/a", Transport::Secure);
        assert!(secure.realm("https://auth.example/token").is_ok());
        assert_eq!(
            secure.realm("http://auth.example/token"),
            Err(Forbidden::LeavesTls)
        );
        assert_eq!(secure.realm("/token"), Err(Forbidden::NotAnAddress));
        let local = address("localhost:5000/a", Transport::Secure);
        assert!(local.realm("http://localhost:5001/token").is_ok());
        assert_eq!(
            local.realm("http://auth.example/token"),
            Err(Forbidden::NotSecure)
        );
    }

    #[test]
    fn only_the_very_origin_is_home_rh_1() {
        let address = address("images.example/a", Transport::Secure);
        for (url, home) in [
            ("https://images.example/anything", true),
            ("https://images.example:443/", true),
            ("http://images.example/", false),
            ("https://images.example:444/", false),
            ("https://cdn.images.example/", false),
        ] {
            assert_eq!(address.is_home(&Url::parse(url).unwrap()), home, "{url}");
        }
    }
}
