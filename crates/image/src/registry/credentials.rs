//! User name and password of a registry, from a file as `docker login` writes it.
//!
//! Credential helpers are not run: they are other people's programs, and a file says what it has.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::header::HeaderValue;
use serde::Deserialize;

use super::{PullError, Sought};

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How the default registry may be called in the file.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_REGISTRY_ALIASES: &[&str] = &["index.docker.io", "registry-1.docker.io"];

/// Who we are to one registry. It can be sent and not be printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    username: String,
    password: String,
}

impl Credentials {
    /// Looks into `file` for `registry`, which is named as in [`crate::ImageName::registry`].
    pub(super) fn find(
        file: Option<&Path>,
        registry: &str,
    ) -> Result<(Option<Self>, Sought), PullError> {
        let Some(file) = file else {
            return Ok((None, Sought::Nowhere));
        };
        let found = read(file)
            .and_then(|text| match text {
                Some(text) => search(&text, registry),
                None => Ok(None),
            })
            .map_err(|problem| PullError::Credentials {
                file: file.to_owned(),
                problem,
            })?;
        let sought = match found {
            Some(_) => Sought::FoundIn(file.to_owned()),
            None => Sought::NoneIn(file.to_owned()),
        };
        Ok((found, sought))
    }

    /// The value of an `Authorization` header.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let pair = format!("{}:{}", self.username, self.password);
        secret_header(&format!("Basic {}", STANDARD.encode(pair)))
    }

    pub(super) fn username(&self) -> &str {
        &self.username
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(..)")
    }
}

/// A header value that no debug output shows. `None` when a header cannot carry it.
pub(super) fn secret_header(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The parts of the file that matter here.
#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    /// User name, colon and password in base64.
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// `None` when there is no such file.
fn read(file: &Path) -> Result<Option<Vec<u8>>, String> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let mut text = Vec::new();
    let mut limited = opened.take(FILE_BYTES_MAX + 1);
    limited
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(Some(text))
}

fn search(text: &[u8], registry: &str) -> Result<Option<Credentials>, String> {
    // The decoder's own words may quote what stands in the file, so only the place is said.
    let config: ConfigFile = serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it is not in the format of `docker login` (line {line}, column {column})")
    })?;
    let mut entries = config.auths.iter();
    match entries.find(|(key, _)| is_key_of(key, registry)) {
        Some((key, entry)) => entry.credentials(key),
        None => Ok(None),
    }
}

/// Keys are hosts, or the URL of a host's API. One with another path is for a part of a registry.
fn is_key_of(key: &str, registry: &str) -> bool {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    let is_whole = matches!(path, "" | "v1" | "v1/" | "v2" | "v2/");
    let host = host.to_ascii_lowercase();
    let is_default = DEFAULT_REGISTRY_ALIASES.contains(&host.as_str());
    is_whole && (host == registry || (is_default && registry == DEFAULT_REGISTRY))
}

impl Entry {
    /// `None` for an empty entry, which says that a helper has the credentials.
    fn credentials(&self, key: &str) -> Result<Option<Credentials>, String> {
        if self.identitytoken.as_ref().is_some_and(|it| !it.is_empty()) {
            return Err(format!(
                "`{key}` has an identity token, which cannot be used here; log in with a password \
                 or an access token"
            ));
        }
        if let (Some(username), Some(password)) = (&self.username, &self.password) {
            return Ok(Some(Credentials {
                username: username.clone(),
                password: password.clone(),
            }));
        }
        let Some(auth) = self.auth.as_ref().filter(|auth| !auth.is_empty()) else {
            return Ok(None);
        };
        let unreadable = || format!("`auth` of `{key}` is not `user:password` in base64");
        let pair = STANDARD.decode(auth).map_err(|_| unreadable())?;
        let pair = String::from_utf8(pair).map_err(|_| unreadable())?;
        let (username, password) = pair.split_once(':').ok_or_else(unreadable)?;
        Ok(Some(Credentials {
            username: username.to_owned(),
            // Some versions end it with a NUL.
            password: password.trim_end_matches('\0').to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, registry: &str) -> Result<Option<(String, String)>, String> {
        let credentials = search(text.as_bytes(), registry)?;
        Ok(credentials.map(|found| (found.username, found.password)))
    }

    fn pair(username: &str, password: &str) -> Result<Option<(String, String)>, String> {
        Ok(Some((username.to_owned(), password.to_owned())))
    }

    #[test]
    fn an_entry_is_found_by_any_spelling_of_its_registry() {
        // `me:pass:word`
        for (key, registry) in [
            (concat!("https://", "index.docker.io", "/v1/"), "docker.io"),
            ("docker.io", "docker.io"),
            ("registry-1.docker.io", "docker.io"),
            ("GHCR.io", "ghcr.io"),
            ("http://localhost:5000/", "localhost:5000"),
            ("localhost:5000", "localhost:5000"),
        ] {
            let text = format!(r#"{{"auths":{{"{key}":{{"auth":"bWU6cGFzczp3b3Jk"}}}}}}"#);
            assert_eq!(found(&text, registry), pair("me", "pass:word"), "{key}");
        }
    }

    #[test]
    fn an_entry_of_another_registry_is_not_used_rh_1() {
        for (key, registry) in [
            ("ghcr.io", "docker.io"),
            ("ghcr.io/somebody", "ghcr.io"),
            ("evil.ghcr.io", "ghcr.io"),
            ("ghcr.io", "ghcr.io:5000"),
            ("index.docker.io", "ghcr.io"),
            ("https://ghcr.io@evil.example", "ghcr.io"),
        ] {
            let text = format!(r#"{{"auths":{{"{key}":{{"auth":"bWU6cGFzczp3b3Jk"}}}}}}"#);
            assert_eq!(found(&text, registry), Ok(None), "{key}");
        }
    }

    #[test]
    fn user_name_and_password_may_stand_in_the_clear() {
        let text = r#"{"auths":{"ghcr.io":{"username":"me","password":"swordfish"}}}"#;
        assert_eq!(found(text, "ghcr.io"), pair("me", "swordfish"));
    }

    #[test]
    fn a_file_without_credentials_has_none() {
        for text in [
            "{}",
            r#"{"auths":{}}"#,
            r#"{"auths":{"ghcr.io":{}},"credsStore":"desktop"}"#,
            r#"{"auths":{"ghcr.io":{"auth":""}}}"#,
        ] {
            assert_eq!(found(text, "ghcr.io"), Ok(None), "{text}");
        }
    }

    #[test]
    fn no_error_shows_what_stands_in_a_broken_file() {
        for text in [
            r#"{"auths":{"ghcr.io":"swordfish"}}"#,
            r#"{"auths":"swordfish"}"#,
            r#"{"auths":{"ghcr.io":{"auth":"swordfish"}}}"#,
            r#"{"auths":{"ghcr.io":{"auth":"c3dvcmRmaXNo"}}}"#,
            r#"{"auths":{"ghcr.io":{"identitytoken":"swordfish"}}}"#,
            "swordfish",
        ] {
            let problem = found(text, "ghcr.io").unwrap_err();
            assert!(!problem.contains("swordfish"), "{problem}");
        }
    }

    #[test]
    fn a_password_never_shows_in_debug_output() {
        let credentials = Credentials {
            username: "me".to_owned(),
            password: "swordfish".to_owned(),
        };
        let header = credentials.header().unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic bWU6c3dvcmRmaXNo");
        assert_eq!(format!("{credentials:?}"), "Credentials(..)");
        assert_eq!(format!("{header:?}"), "Sensitive");
    }

    #[test]
    fn a_file_that_is_not_there_or_too_large_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let (none, sought) = Credentials::find(Some(&missing), "ghcr.io").unwrap();
        assert_eq!((none, sought), (None, Sought::NoneIn(missing)));
        assert_eq!(
            Credentials::find(None, "ghcr.io").unwrap(),
            (None, Sought::Nowhere)
        );
        let large = directory.path().join("large");
        File::create(&large)
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        let error = Credentials::find(Some(&large), "ghcr.io").unwrap_err();
        assert!(error.to_string().contains("larger than"), "{error}");
    }
}
