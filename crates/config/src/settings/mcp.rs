//! `[mcp]`: servers of tools, in the shape that OpenHands' `config.toml` has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::variables::SandboxVariables;
use crate::key::section;
use crate::secret::Secret;
use crate::setting::{Mismatch, Setting, Shape};
use crate::value::Value;

/// How long a call may take, as OpenHands allows it.
const TIMEOUT_SECONDS_MAX: u64 = 3600;

/// A server that is reached by HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct McpRemote {
    /// Its address.
    pub url: String,
    /// What it wants to see.
    pub api_key: Option<Secret>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
}

/// A server that is a program in the sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct McpProgram {
    /// What it is called; it stands in front of the names of its tools.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those that every program of the sandbox has.
    pub env: SandboxVariables,
}

section! {
    /// Servers of tools.
    McpSettings at mcp named "mcp" {
        /// Servers that are reached by HTTP with a stream of events: addresses, or tables with
        /// `url` and `api_key`.
        sse_servers: Vec<McpRemote> = Vec::new(), env "MCP_SSE_SERVERS", check distinct;
        /// Servers that are reached by streamable HTTP: addresses, or tables with `url`, `api_key`
        /// and `timeout`.
        shttp_servers: Vec<McpRemote> = Vec::new(), env "MCP_SHTTP_SERVERS", check distinct;
        /// Servers that are programs, started in the sandbox: tables with `name`, `command`, `args`
        /// and `env`.
        stdio_servers: Vec<McpProgram> = Vec::new(), env "MCP_STDIO_SERVERS", check distinct_names;
    }
}

impl Setting for Vec<McpRemote> {
    const SHAPE: Shape = Shape::List("addresses and tables");

    fn read(value: &Value) -> Result<Self, Mismatch> {
        items(value, Self::SHAPE)?.iter().map(remote).collect()
    }

    fn write(&self) -> Value {
        Value::List(self.iter().map(remote_value).collect())
    }
}

impl Setting for Vec<McpProgram> {
    const SHAPE: Shape = Shape::List("tables");

    fn read(value: &Value) -> Result<Self, Mismatch> {
        items(value, Self::SHAPE)?.iter().map(program).collect()
    }

    fn write(&self) -> Value {
        Value::List(self.iter().map(program_value).collect())
    }
}

fn items(value: &Value, shape: Shape) -> Result<&[Value], Mismatch> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(Mismatch::wrong_type(shape, other)),
    }
}

fn remote(value: &Value) -> Result<McpRemote, Mismatch> {
    let entries = match value {
        Value::Text(url) => BTreeMap::from([("url".to_owned(), Value::Text(url.clone()))]),
        other => BTreeMap::read(other)?,
    };
    let mut remote = McpRemote {
        url: String::new(),
        api_key: None,
        timeout: None,
    };
    for (name, value) in &entries {
        match name.as_str() {
            "url" => remote.url = String::read(value)?,
            "api_key" => remote.api_key = Option::read(value)?,
            "timeout" => remote.timeout = Option::read(value)?,
            other => return Err(unknown(other, "`url`, `api_key` and `timeout`")),
        }
    }
    let has_host = ["http://", "https://"].iter().any(|scheme| {
        let rest = remote.url.strip_prefix(scheme);
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    });
    if !has_host {
        let reason = "has a server whose `url` is no address that begins with `http://` or \
                      `https://`";
        return Err(Mismatch::rule(reason));
    }
    let is_sane = |timeout: &Duration| (1..=TIMEOUT_SECONDS_MAX).contains(&timeout.as_secs());
    if !remote.timeout.iter().all(is_sane) {
        let reason = format!("has a `timeout` that is not from 1 to {TIMEOUT_SECONDS_MAX} seconds");
        return Err(Mismatch::rule(reason));
    }
    Ok(remote)
}

fn remote_value(remote: &McpRemote) -> Value {
    let mut entries = BTreeMap::from([("url".to_owned(), remote.url.write())]);
    if let Some(key) = &remote.api_key {
        entries.insert("api_key".to_owned(), key.write());
    }
    if let Some(timeout) = &remote.timeout {
        entries.insert("timeout".to_owned(), timeout.write());
    }
    Value::Table(entries)
}

fn program(value: &Value) -> Result<McpProgram, Mismatch> {
    let mut program = McpProgram {
        name: String::new(),
        command: String::new(),
        args: Vec::new(),
        env: SandboxVariables::default(),
    };
    for (name, value) in &BTreeMap::<String, Value>::read(value)? {
        match name.as_str() {
            "name" => program.name = String::read(value)?,
            "command" => program.command = String::read(value)?,
            "args" => program.args = Vec::read(value)?,
            "env" => {
                for (name, value) in BTreeMap::<String, Value>::read(value)? {
                    program.env.insert(name, String::read(&value)?);
                }
            }
            other => return Err(unknown(other, "`name`, `command`, `args` and `env`")),
        }
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if program.name.is_empty() || !program.name.bytes().all(is_plain) {
        let reason = "has a server whose `name` is not made of letters, digits, `_` and `-`";
        return Err(Mismatch::rule(reason));
    }
    if program.command.is_empty() || program.command.contains(char::is_whitespace) {
        let reason = format!(
            "has the server `{}` whose `command` is not one word; further words go to `args`",
            program.name
        );
        return Err(Mismatch::rule(reason));
    }
    Ok(program)
}

fn program_value(program: &McpProgram) -> Value {
    let env = program.env.iter();
    let env = env.map(|(name, value)| (name.to_owned(), Value::Text(value.to_owned())));
    Value::Table(BTreeMap::from([
        ("name".to_owned(), program.name.write()),
        ("command".to_owned(), program.command.write()),
        ("args".to_owned(), program.args.write()),
        ("env".to_owned(), Value::Table(env.collect())),
    ]))
}

fn unknown(name: &str, known: &str) -> Mismatch {
    Mismatch::rule(format!(
        "has a server with the key `{name}`; there are {known}"
    ))
}

fn distinct(servers: &[McpRemote]) -> Result<(), Mismatch> {
    let urls: BTreeSet<&str> = servers.iter().map(|server| server.url.as_str()).collect();
    match urls.len() == servers.len() {
        true => Ok(()),
        false => Err(Mismatch::rule("has the same `url` twice")),
    }
}

fn distinct_names(servers: &[McpProgram]) -> Result<(), Mismatch> {
    let names: BTreeSet<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    match names.len() == servers.len() {
        true => Ok(()),
        false => Err(Mismatch::rule("has the same `name` twice")),
    }
}
