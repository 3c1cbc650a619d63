//! What images are called: `[registry[:port]/]repository[:tag][@digest]`.
//!
//! The grammar is the one that other tools use, so a name means the same image everywhere:
//! `debian` is `docker.io/library/debian:latest`, and `localhost:5000/a` names a registry because
//! its first part has a port.

use std::{fmt, str::FromStr};

use crate::Digest;

/// Longest name that is taken, all parts together.
pub const NAME_BYTES_MAX: usize = 255;
const TAG_BYTES_MAX: usize = 128;

const DEFAULT_REGISTRY: &str = "docker.io";
/// Where the default registry answers; its own name is a web site.
const DEFAULT_REGISTRY_API: &str = "registry-1.docker.io";
/// Older spellings of the default registry.
const DEFAULT_REGISTRY_ALIAS: &str = "index.docker.io";
/// Where the default registry keeps the images whose name has one part.
const DEFAULT_NAMESPACE: &str = "library/";
const DEFAULT_TAG: &str = "latest";

/// The name of an image, in full.
///
/// Two spellings of one name are equal, and `Display` writes the short one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A text that names no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the name of an image: {problem}")]
pub struct ParseNameError {
    text: String,
    problem: NameProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum NameProblem {
    #[error("a name has 1 to {NAME_BYTES_MAX} characters")]
    Length,
    #[error("the registry must be a host name, with a port if need be")]
    Registry,
    #[error(
        "a repository is made of lowercase letters and digits, with `/` between its parts and \
         single `.`, `_`, `__` or `-` inside them"
    )]
    Repository,
    #[error("a tag is made of up to {TAG_BYTES_MAX} letters, digits, `_`, `.` and `-`")]
    Tag,
    #[error("a digest is `sha256:` and 64 lowercase hexadecimal digits")]
    Digest,
}

impl ImageName {
    /// Reads a name; without tag and digest it means the tag `latest`.
    pub fn parse(text: &str) -> Result<Self, ParseNameError> {
        Self::read(text).map_err(|problem| ParseNameError {
            // What is shown of a hostile text stays short.
            text: text.escape_debug().take(NAME_BYTES_MAX).collect(),
            problem,
        })
    }

    fn read(text: &str) -> Result<Self, NameProblem> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(NameProblem::Length);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = Digest::parse(digest).map_err(|_| NameProblem::Digest)?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (registry, path) = split_registry(rest)?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(checked_tag(tag)?)),
            None if digest.is_some() => (path, None),
            None => (path, Some(DEFAULT_TAG.to_owned())),
        };
        if !repository.split('/').all(is_repository_part) {
            return Err(NameProblem::Repository);
        }
        let repository = match registry.as_str() {
            DEFAULT_REGISTRY if !repository.contains('/') => {
                format!("{DEFAULT_NAMESPACE}{repository}")
            }
            _ => repository.to_owned(),
        };
        Ok(Self {
            registry,
            repository,
            tag,
            digest,
        })
    }

    /// The registry as it is named, `docker.io` unless the name says another.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host, with a port if need be, where the registry answers requests.
    #[must_use]
    pub fn api_host(&self) -> &str {
        match self.registry.as_str() {
            DEFAULT_REGISTRY => DEFAULT_REGISTRY_API,
            registry => registry,
        }
    }

    /// The repository inside the registry, such as `library/debian`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// None when only a digest was given.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// What to ask the registry for: the digest when there is one, as it cannot move; else the tag.
    #[must_use]
    pub fn reference(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => DEFAULT_TAG.to_owned(),
        }
    }

    /// The name with nothing left out, such as `docker.io/library/debian:latest`.
    #[must_use]
    pub fn canonical(&self) -> String {
        format!("{}/{}{}", self.registry, self.repository, Suffix(self))
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.registry == DEFAULT_REGISTRY {
            let short = self.repository.strip_prefix(DEFAULT_NAMESPACE);
            // `docker.io/library/a/b` must not become `a/b`, which is another one.
            let short = short.filter(|short| !short.contains('/'));
            formatter.write_str(short.unwrap_or(&self.repository))?;
        } else {
            write!(formatter, "{}/{}", self.registry, self.repository)?;
        }
        write!(formatter, "{}", Suffix(self))
    }
}

impl FromStr for ImageName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, ParseNameError> {
        Self::parse(text)
    }
}

/// The tag and the digest, as they follow the repository.
struct Suffix<'a>(&'a ImageName);

impl fmt::Display for Suffix<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tag) = &self.0.tag {
            write!(formatter, ":{tag}")?;
        }
        match &self.0.digest {
            Some(digest) => write!(formatter, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// The first part is a registry when it could not be a repository's: it has a dot or a port, or
/// is `localhost`.
fn split_registry(text: &str) -> Result<(String, &str), NameProblem> {
    let Some((first, path)) = text.split_once('/') else {
        return Ok((DEFAULT_REGISTRY.to_owned(), text));
    };
    if first != "localhost" && !first.contains(['.', ':']) {
        return Ok((DEFAULT_REGISTRY.to_owned(), text));
    }
    if !is_registry(first) {
        return Err(NameProblem::Registry);
    }
    let registry = first.to_ascii_lowercase();
    match registry.as_str() {
        DEFAULT_REGISTRY_ALIAS | DEFAULT_REGISTRY_API => Ok((DEFAULT_REGISTRY.to_owned(), path)),
        _ => Ok((registry, path)),
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                return port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            }
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        !label.starts_with('-')
            && !label.ends_with('-')
            && (1..=63).contains(&bytes.len())
            && bytes.iter().all(is_inner)
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn checked_tag(tag: &str) -> Result<String, NameProblem> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_good = tag.len() <= TAG_BYTES_MAX
        && tag.bytes().next().is_some_and(is_word)
        && tag
            .bytes()
            .all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    if is_good {
        Ok(tag.to_owned())
    } else {
        Err(NameProblem::Tag)
    }
}

/// Letters and digits, joined by one dot, one or two underscores, or any number of dashes.
fn is_repository_part(part: &str) -> bool {
    let is_word = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let mut joints = part.split(is_word).peekable();
    let mut is_inner = false;
    while let Some(joint) = joints.next() {
        let is_last = joints.peek().is_none();
        let is_good = match joint {
            "" => true,
            "." | "_" | "__" => is_inner && !is_last,
            dashes => is_inner && !is_last && dashes.bytes().all(|byte| byte == b'-'),
        };
        if !is_good {
            return false;
        }
        is_inner = true;
    }
    !part.is_empty()
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
