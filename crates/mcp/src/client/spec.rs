//! Which servers there are, as whoever configures them says it.

use std::{fmt, time::Duration};

/// The longest name of a server: it stands in front of the names of its tools.
const NAME_CHARS_MAX: usize = 48;

/// How long a call may take where nobody says otherwise.
const CALL_PATIENCE: Duration = Duration::from_secs(60);

/// A server of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// What it is called: letters, digits, `_` and `-`.
    pub name: String,
    /// Where it is.
    pub reach: Reach,
    /// How long a call of its tools may take.
    pub timeout: Duration,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A program that is started where tools run.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables beside those that every program has there.
        environment: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// What it wants to see.
        key: Option<RemoteKey>,
    },
    /// HTTP with a stream of events, as servers had it before.
    Events {
        /// The address of the stream.
        url: String,
        /// What it wants to see.
        key: Option<RemoteKey>,
    },
}

/// A secret for a server elsewhere. It can be sent and not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteKey(String);

/// Why something cannot be a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot be an MCP server: {reason}")]
pub struct InvalidServer {
    /// Which.
    pub name: String,
    /// What is wrong with it and what to do.
    pub reason: String,
}

impl ServerSpec {
    /// A program that is started where tools run.
    ///
    /// # Errors
    /// A name that cannot stand in front of a tool's, or no program.
    pub fn program(
        name: &str,
        command: &str,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
    ) -> Result<Self, InvalidServer> {
        let invalid = |reason: &str| InvalidServer {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            let reason = "its name must have 1 to 48 letters, digits, `_` and `-`";
            return Err(invalid(reason));
        }
        if command.is_empty() || command.contains(char::is_whitespace) {
            let reason = "its command must be one word; further words are its arguments";
            return Err(invalid(reason));
        }
        let reach = Reach::Program {
            command: command.to_owned(),
            arguments,
            environment,
        };
        Ok(Self::new(name.to_owned(), reach))
    }

    /// A server that is reached by streamable HTTP, named by its host.
    ///
    /// # Errors
    /// An address that is none.
    pub fn http(url: &str, key: Option<RemoteKey>) -> Result<Self, InvalidServer> {
        let name = host_name(url)?;
        let url = url.to_owned();
        Ok(Self::new(name, Reach::Http { url, key }))
    }

    /// A server that is reached by a stream of events, named by its host.
    ///
    /// # Errors
    /// An address that is none.
    pub fn events(url: &str, key: Option<RemoteKey>) -> Result<Self, InvalidServer> {
        let name = host_name(url)?;
        let url = url.to_owned();
        Ok(Self::new(name, Reach::Events { url, key }))
    }

    fn new(name: String, reach: Reach) -> Self {
        Self {
            name,
            reach,
            timeout: CALL_PATIENCE,
        }
    }

    /// The same with another limit for calls.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Gives servers that would have the same name a number each.
    pub fn with_names_apart(mut specs: Vec<Self>) -> Vec<Self> {
        for index in 1..specs.len() {
            let (before, rest) = specs.split_at_mut(index);
            let Some(spec) = rest.first_mut() else { break };
            let base = spec.name.clone();
            let mut number = 1;
            while before.iter().any(|other| other.name == spec.name) {
                number += 1;
                spec.name = format!("{base}_{number}");
            }
        }
        specs
    }
}

impl RemoteKey {
    /// Takes a key over; `None` for what could not be sent as a header.
    pub fn new(key: &str) -> Option<Self> {
        let is_fine = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        is_fine.then(|| Self(key.to_owned()))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RemoteKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RemoteKey(..)")
    }
}

/// The host of an address as a name.
fn host_name(url: &str) -> Result<String, InvalidServer> {
    let invalid = |reason: &str| InvalidServer {
        name: url.to_owned(),
        reason: reason.to_owned(),
    };
    let parsed = reqwest::Url::parse(url).map_err(|_| invalid("that is no address"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(invalid(
            "its address must begin with `http://` or `https://`",
        ));
    }
    let host = parsed
        .host_str()
        .ok_or_else(|| invalid("its address has no host"))?;
    let name = host.chars().map(|character| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => character,
        _ => '_',
    });
    Ok(name.take(NAME_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_stand_in_front_of_the_names_of_tools() {
        let program =
            |name: &str, command: &str| ServerSpec::program(name, command, Vec::new(), Vec::new());
        program("a_B-1", "uvx").unwrap();
        for (name, command) in [
            ("", "uvx"),
            ("a b", "uvx"),
            ("a.b", "uvx"),
            ("a", ""),
            ("a", "uvx x"),
            (&*"a".repeat(49), "uvx"),
        ] {
            program(name, command).unwrap_err();
        }
        let named = |url: &str| ServerSpec::http(url, None).map(|spec| spec.name);
        assert_eq!(
            named("https://mcp.example.com/a").unwrap(),
            "mcp_example_com"
        );
        assert_eq!(named("http://[::1]:80/").unwrap(), "___1_");
        for url in ["", "mcp", "ftp://a/", "file:///etc/passwd"] {
            named(url).unwrap_err();
        }
    }

    #[test]
    fn the_same_name_twice_gets_a_number() {
        let spec = |url: &str| ServerSpec::events(url, None).unwrap();
        let specs = vec![spec("http://a/1"), spec("http://a/2"), spec("http://a/3")];
        let specs = ServerSpec::with_names_apart(specs);
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_3"]);
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = RemoteKey::new("swordfish").unwrap();
        assert_eq!(format!("{key:?}"), "RemoteKey(..)");
        assert_eq!(RemoteKey::new("a b"), None);
    }
}
