//! From the `[mcp]` section to servers.

use std::path::Path;

use zareba_config::{McpRemote, McpSettings, Secret};
use zareba_mcp::client::{InvalidServer, Pins, RemoteKey, ServerSpec};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The accepted definitions of a state directory.
pub(crate) fn pins(state: &Path) -> Result<Pins, Failure> {
    let path = state.join("mcp-tools.json");
    Pins::in_file(&path).or_fail(Exit::Start, "cannot find out which tools were accepted")
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
