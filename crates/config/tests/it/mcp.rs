//! `[mcp]`: servers of tools in the shape that OpenHands' file has.

use std::time::Duration;

use crate::case::Case;

const FILE: &str = r#"
[mcp]
sse_servers = ["http://localhost:8080/sse", { url = "https://a.example/sse", api_key = "k1" }]
shttp_servers = [{ url = "https://a.example/mcp", api_key = "swordfish", timeout = 5 }]

[[mcp.stdio_servers]]
name = "fetch"
command = "uvx"
args = ["mcp-server-fetch"]
env = { API_TOKEN = "hunter2", LOG = "off" }
"#;

#[test]
fn servers_are_read_as_openhands_writes_them() {
    let mcp = Case::new().file("zareba.toml", FILE).load().settings.mcp;
    let urls: Vec<&str> = mcp.sse_servers.iter().map(|it| it.url.as_str()).collect();
    assert_eq!(urls, ["http://localhost:8080/sse", "https://a.example/sse"]);
    assert_eq!(mcp.shttp_servers[0].timeout, Some(Duration::from_secs(5)));
    let key = mcp.shttp_servers[0].api_key.as_ref().unwrap();
    assert_eq!(key.expose(), "swordfish");
    let program = &mcp.stdio_servers[0];
    assert_eq!(
        (program.name.as_str(), program.command.as_str()),
        ("fetch", "uvx")
    );
    assert_eq!(program.args, ["mcp-server-fetch"]);
    assert_eq!(program.env.get("LOG"), Some("off"));
}

#[test]
fn secrets_of_servers_are_not_shown() {
    let configuration = Case::new().file("zareba.toml", FILE).load();
    let shown = format!("{:?}{:?}", configuration.table(), configuration.settings);
    assert!(
        shown.contains("fetch") && shown.contains("https://a.example/mcp"),
        "{shown}"
    );
    for secret in ["swordfish", "hunter2", "k1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn variables_hold_servers_as_python_or_json_writes_them() {
    let servers = r#"[{'url': 'http://a.example/sse'}, "http://b.example/sse"]"#;
    let case = Case::new().variable("MCP_SSE_SERVERS", servers);
    assert_eq!(case.load().settings.mcp.sse_servers.len(), 2);
}

#[test]
fn what_cannot_be_a_server_is_refused_with_its_place() {
    for (text, expected) in [
        ("sse_servers = 7", "must be a list of addresses and tables"),
        ("sse_servers = [\"ftp://a\"]", "no address"),
        ("sse_servers = [\"http://\"]", "no address"),
        (
            "sse_servers = [\"http://a\", \"http://a\"]",
            "the same `url` twice",
        ),
        (
            "shttp_servers = [{ url = \"http://a\", timeout = 0 }]",
            "from 1 to 3600",
        ),
        (
            "shttp_servers = [{ url = \"http://a\", key = \"x\" }]",
            "the key `key`",
        ),
        (
            "stdio_servers = [{ name = \"a b\", command = \"x\" }]",
            "`name` is not made of",
        ),
        (
            "stdio_servers = [{ name = \"a\", command = \"x y\" }]",
            "not one word",
        ),
        ("stdio_servers = [\"x\"]", "must be a table"),
    ] {
        let case = Case::new().file("zareba.toml", &format!("[mcp]\n{text}\n"));
        let complaints = case.complaints();
        assert!(
            complaints.len() == 1 && complaints[0].contains(expected),
            "{text}: {complaints:?}"
        );
    }
}
