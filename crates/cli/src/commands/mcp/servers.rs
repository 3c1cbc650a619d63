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
    let path = state.join("mcp-pins.json");
    Pins::in_file(&path).or_fail(Exit::Start, "cannot find out which tools were accepted")
}

/// What the settings give to servers and is nobody else's business: their keys, and variables of
/// their programs. Programs run where agents are, who can read those; what is no secret by its
/// name and looks like a path or a plain word is not among them, as it is in every other text.
pub(crate) fn secrets(settings: &McpSettings) -> impl Iterator<Item = String> {
    let remotes = settings.shttp_servers.iter().chain(&settings.sse_servers);
    let keys = remotes.filter_map(|remote| remote.api_key.as_ref());
    let keys = keys.map(|key| key.expose().to_owned());
    let programs = settings.stdio_servers.iter();
    let variables = programs.flat_map(|program| program.env.iter());
    let hidden = variables.filter(|(name, value)| is_secret(name, value));
    keys.chain(hidden.map(|(_, value)| value.to_owned()))
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_named_so = SECRET_WORDS.iter().any(|word| name.contains(word));
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
    is_named_so || (value.len() >= VALUE_BYTES_MIN && !is_word && !value.starts_with('/'))
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
}
