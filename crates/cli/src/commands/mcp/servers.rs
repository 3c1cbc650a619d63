//! From the `[mcp]` section to servers.

use std::path::Path;

use zareba_config::{McpRemote, McpSettings, Secret};
use zareba_mcp::client::{InvalidServer, Pins, RemoteKey, ServerSpec};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// What a name has in it that says that the value is nobody's business.
const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED"];

/// The shortest value that is hidden whatever its name says.
const VALUE_BYTES_MIN: usize = 8;

/// The accepted definitions of a state directory.
pub(crate) fn pins(state: &Path) -> Result<Pins, Failure> {
    let path = state.join("mcp-pins");
    Pins::in_directory(&path).or_fail(Exit::Start, "cannot find out which tools were accepted")
}

/// What the settings give to servers and is nobody else's business: their keys, what their
/// addresses hold of that kind, and variables and arguments of their programs. Programs run where
/// agents are, who can read those; what is no secret by its name and looks like a path or a plain
/// word is not among them, as it is in every other text.
pub(crate) fn secrets(settings: &McpSettings) -> impl Iterator<Item = String> {
    let remotes = settings.shttp_servers.iter().chain(&settings.sse_servers);
    let of_remotes = remotes.flat_map(|remote| {
        let key = remote.api_key.as_ref().map(|key| key.expose().to_owned());
        key.into_iter().chain(in_address(&remote.url))
    });
    let of_programs = settings.stdio_servers.iter().flat_map(|program| {
        let variables = program.env.iter();
        let hidden = variables.filter(|(name, value)| is_secret(name, value));
        let hidden = hidden.map(|(_, value)| value.to_owned());
        hidden.chain(in_arguments(&program.args))
    });
    of_remotes.chain(of_programs)
}

fn is_secret(name: &str, value: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
    let looks_so = value.len() >= VALUE_BYTES_MIN && !is_word && !value.starts_with('/');
    looks_so || (is_named_so(name) && !value.is_empty())
}

fn is_named_so(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The secrets of an address: who asks, and values of its query. Each as it is written there and
/// as it is meant, since programs print both.
fn in_address(address: &str) -> Vec<String> {
    let Some((_, rest)) = address.split_once("://") else {
        return Vec::new();
    };
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    let (who, _) = authority.rsplit_once('@').unwrap_or_default();
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    // A token may stand in the place of a user.
    let asking = [("", user), ("PASSWORD", password)];
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let hidden = asking.into_iter().chain(pairs);
    let hidden = hidden.filter(|(name, value)| is_secret(name, value));
    let mut secrets = Vec::new();
    for (_, value) in hidden {
        secrets.push(value.to_owned());
        secrets.extend(decoded(value).filter(|meant| meant != value));
    }
    secrets
}

/// What a part of an address means; `None` when that is no text.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = byte.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    String::from_utf8(bytes).ok()
}

/// The secrets among the arguments of a program: what options, variables and headers give that are
/// called so, and those of addresses.
fn in_arguments(arguments: &[String]) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut option = None;
    for argument in arguments {
        secrets.extend(in_address(argument));
        let given = match argument.strip_prefix('-') {
            // The next one is its value, unless it stands behind a sign.
            Some(_) => argument.split_once('='),
            None => match option {
                Some(option) => Some((option, argument.as_str())),
                None => argument.split_once(['=', ':']),
            },
        };
        option = (argument.starts_with('-') && given.is_none()).then_some(argument.as_str());
        secrets.extend(given.and_then(|(name, value)| of_argument(name, value)));
    }
    secrets
}

/// What an argument gives, if its name says that this is a secret. Choices, such as `--auth none`,
/// and paths, such as `--key-file /key`, are none.
fn of_argument(name: &str, value: &str) -> Option<String> {
    // A header or a variable may be what an option gives: `--header "Authorization: Bearer …"`.
    let (name, value) = match value.split_once(['=', ':']) {
        Some((inner, value)) if !is_named_so(name) => (inner, value),
        _ => (name, value),
    };
    // The kind of a key stands before it.
    let value = value.split_whitespace().next_back()?;
    let is_choice =
        value.len() < VALUE_BYTES_MIN && value.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_hidden = is_named_so(name) && !is_choice && !value.starts_with('/');
    is_hidden.then(|| value.to_owned())
}

/// The servers that the settings name, programs first.
pub(crate) fn specs(settings: &McpSettings) -> Result<Vec<ServerSpec>, Failure> {
    let programs = settings.stdio_servers.iter().map(|program| {
        let variables = program.env.iter();
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let arguments = program.args.clone();
        ServerSpec::program(
            &program.name,
            &program.command,
            arguments,
            variables.collect(),
        )
    });
    let http = settings.shttp_servers.iter().map(|remote| {
        let spec = ServerSpec::http(&remote.url, key(remote)?);
        spec.map(|spec| in_time(spec, remote))
    });
    let events = settings.sse_servers.iter().map(|remote| {
        let spec = ServerSpec::events(&remote.url, key(remote)?);
        spec.map(|spec| in_time(spec, remote))
    });
    let specs: Result<Vec<ServerSpec>, InvalidServer> =
        programs.chain(http).chain(events).collect();
    let specs = specs.or_fail(Exit::Configuration, "cannot use the section `[mcp]`")?;
    Ok(ServerSpec::with_names_apart(specs))
}

fn in_time(spec: ServerSpec, remote: &McpRemote) -> ServerSpec {
    match remote.timeout {
        Some(timeout) => spec.with_timeout(timeout),
        None => spec,
    }
}

fn key(remote: &McpRemote) -> Result<Option<RemoteKey>, InvalidServer> {
    let read = |secret: &Secret| {
        RemoteKey::new(secret.expose()).ok_or_else(|| InvalidServer {
            name: remote.url.clone(),
            reason: "its `api_key` has characters that a header cannot carry".to_owned(),
        })
    };
    remote.api_key.as_ref().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_secrets_unless_they_plainly_are_not() {
        for (name, value) in [
            ("API_KEY", "abcd"),
            ("github_token", "plainword"),
            ("DB", "postgres://user:pw@host/db"),
            ("X", "A1b2C3d4"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("LOG", "off"),
            ("MODE", "production"),
            ("CACHE", "/var/cache/servers"),
            ("PORT", "8080"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }

    #[test]
    fn addresses_hide_who_asks_and_what_their_query_tells() {
        let address = "https://us:s%40ame@host:1/a?token=abc&v=1&x=A1b2C3d4%2B&mode=plainword#t=Z9";
        let hidden = in_address(address);
        let expected = ["s%40ame", "s@ame", "abc", "A1b2C3d4%2B", "A1b2C3d4+"];
        assert_eq!(hidden, expected);
        assert_eq!(in_address("https://ghp_A1b2C3@host/"), ["ghp_A1b2C3"]);
        for address in ["https://host/a@b:c?d", "host", "", "http://h/?=&token="] {
            assert_eq!(in_address(address), [""; 0], "{address}");
        }
        assert_eq!(decoded("a%4").as_deref(), Some("a%4"));
        assert_eq!(decoded("%zz%41").as_deref(), Some("%zzA"));
        assert_eq!(decoded("%ff"), None);
    }

    #[test]
    fn arguments_that_are_called_secrets_are_hidden() {
        let hidden = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            in_arguments(&words)
        };
        assert_eq!(hidden(&["--token=T1", "-y"]), ["T1"]);
        assert_eq!(hidden(&["x", "--api-key", "K1", "y"]), ["K1"]);
        assert_eq!(hidden(&["-e", "API_KEY=K2"]), ["K2"]);
        assert_eq!(hidden(&["API_KEY=K3"]), ["K3"]);
        let header = ["--header", "Authorization: Bearer B1"];
        assert_eq!(hidden(&header), ["B1"]);
        assert_eq!(hidden(&["postgres://me:P1@host/db"]), ["P1"]);
        assert_eq!(hidden(&["--db=postgres://me:P2@host/db"]), ["P2"]);
        let plain = [
            "mcp-server-fetch",
            "--auth",
            "none",
            "--key-file",
            "/run/key",
            "--token",
            "--verbose",
            "--port=8080",
            "pkg@1.2",
        ];
        assert_eq!(hidden(&plain), [""; 0]);
    }

    #[test]
    fn all_that_the_settings_give_is_looked_through() {
        let remote = |url: &str| McpRemote {
            url: url.to_owned(),
            api_key: None,
            timeout: None,
        };
        let settings = McpSettings {
            sse_servers: vec![remote("https://h/?key=Q1")],
            shttp_servers: vec![remote("https://a:P1@h/")],
            ..McpSettings::default()
        };
        assert_eq!(secrets(&settings).collect::<Vec<_>>(), ["P1", "Q1"]);
    }
}
