//! `zareba mcp`: a sandbox behind the Model Context Protocol, talked to as a client does.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use crate::{
    announced::{Announced, bearer},
    serving::Serving,
    support::{Lasting, PATIENCE, Place, ends_within, request_on},
};

/// A client on the standard streams of the program. Going, it ends the program.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    /// What the program tells a model before anything else.
    instructions: String,
}

impl Client {
    /// Starts the program and shakes hands.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            asked: 0,
            instructions: String::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask("initialize", &hello);
        assert!(answer["capabilities"]["tools"].is_object(), "{answer}");
        assert!(answer["serverInfo"]["name"].is_string(), "{answer}");
        let instructions = answer["instructions"].as_str().unwrap();
        client.instructions = instructions.to_owned();
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    /// Sends a request and returns its result.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        self.send(&request);
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "the program ended instead of answering {request}");
            let mut answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(id) {
                assert!(answer.get("error").is_none(), "{answer}");
                return answer["result"].take();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// The text that a model reads of what a tool answers.
    pub(crate) fn told(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], json!(false), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The text that a model reads of a command.
    pub(crate) fn run(&mut self, command: &str) -> String {
        let result = self.call("run_command", json!({ "command": command }));
        assert_eq!(result["isError"], json!(false), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The same, and returns what the program has said beside it.
    pub(crate) fn leave_with_words(mut self) -> String {
        self.input = None;
        let mut words = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut words).unwrap();
        assert_eq!(self.leave(), Some(0), "{words}");
        words
    }

    /// Goes as clients go, and returns what the program ends with.
    pub(crate) fn leave(mut self) -> Option<i32> {
        self.input = None;
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        assert!(ends_within(&process, PATIENCE), "the program does not end");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_works_in_a_fresh_sandbox_with_walls() {
    let place = Place::new();
    fs::write(place.path("workspace").join("note"), "written outside\n").unwrap();
    let workspace = place.path("workspace").display().to_string();
    let command = place.zareba(&["mcp", "--workspace", &workspace]);
    let mut client = Client::start(command);
    let told = "The workspace is copied on write: the user's files stay as they are, and all changes \
                are gone when this client ends.";
    assert!(
        client.instructions.contains(told),
        "{}",
        client.instructions
    );

    let listed = client.ask("tools/list", &json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in ["run_command", "read_file", "edit_file", "search_files"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(tools.iter().all(|tool| tool["inputSchema"].is_object()));

    let said = client
        .run("cat note; X=kept; echo made inside > note; exit_code() { return 3; }; exit_code");
    assert!(
        said.starts_with("written outside\n") && said.contains("[exit code 3]"),
        "{said}"
    );
    assert!(client.run("echo $X; id -u").starts_with("kept\n"));
    let home = place.path("home").display().to_string();
    let seen = client.run(&format!("ls -A {home} 2>&1"));
    assert!(seen.contains("No such file"), "{seen}");
    let read = client.call("read_file", json!({ "path": "note" }));
    assert!(
        read["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("made inside"),
        "{read}"
    );
    let wrong = client.call("read_file", json!({ "path": "missing" }));
    assert_eq!(wrong["isError"], json!(true), "{wrong}");

    assert_eq!(client.leave(), Some(0));
    let note = fs::read_to_string(place.path("workspace").join("note")).unwrap();
    assert_eq!(note, "written outside\n", "the workspace is a copy");
    let left = fs::read_dir(place.path("state/native")).unwrap();
    let left: Vec<_> = left
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != ".lock")
        .collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new());
}

#[test]
fn a_client_works_in_a_sandbox_that_is_there_and_stays() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "build"]);
    let told = place.output(&["exec", sandbox.id(), "--", "echo from exec > file"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let mut client = Client::start(place.zareba(&["mcp", "--session", sandbox.id()]));
    for told in [
        "Files in the workspace stay in the sandbox when this client ends. There is no network.",
        "There is no root and no sudo.",
    ] {
        assert!(
            client.instructions.contains(told),
            "{}",
            client.instructions
        );
    }
    assert!(
        client
            .run("cat file; echo from mcp > file")
            .starts_with("from exec\n")
    );
    assert_eq!(client.leave(), Some(0));
    let told = place.output(&["exec", sandbox.id(), "--", "cat", "file"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "from mcp\n"));

    let told = place.output(&["mcp", "--session", sandbox.id(), "--network", "none"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    let told = place.output(&["mcp", "--session", "nobody"]);
    assert_eq!(told.code, Some(123), "{}", told.stderr);
}

#[test]
fn a_client_works_in_a_session_of_a_server() {
    let place = Place::new();
    let serving = Serving::start(&place, &[]).unwrap();
    let line = serving.line().unwrap();
    let made = json!({ "id": "shared" });
    line.ask("POST", "/v1/sessions", Some(&made)).unwrap();
    let url = format!("unix:{}", place.path("socket").display());
    let mut client = Client::start(place.zareba(&["--server", &url, "mcp", "--session", "shared"]));
    let told = "The sandbox is a session of a server: everything in it stays there when this client \
                ends. There is no network.";
    assert!(
        client.instructions.contains(told),
        "{}",
        client.instructions
    );
    assert!(
        client
            .run("echo through the server")
            .starts_with("through the server\n")
    );
    assert_eq!(client.leave(), Some(0));
    // What was asked by this client is in the log of the session like anything else.
    let events = line
        .ask("GET", "/v1/sessions/shared/events", None)
        .unwrap()
        .to_string();
    assert!(events.contains("echo through the server"), "{events}");

    let mut client = Client::start(place.zareba(&["--server", &url, "mcp"]));
    let told = "The sandbox is a session of a server: everything in it is gone when this client \
                ends. There is no network.";
    assert!(
        client.instructions.contains(told),
        "{}",
        client.instructions
    );
    assert!(
        client
            .run("echo in a session of its own")
            .starts_with("in a session")
    );
    assert_eq!(client.leave(), Some(0));
}

/// A server of one tool, which tells its key and where else that can be read.
const SERVER: &str = r#"
import json, os, sys

KEY = os.environ["SERVICE_KEY"]
TOOL = {"name": "tell", "description": f"Has {KEY}.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "x", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": f"{os.getpid()} {KEY}"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn keys_of_other_servers_are_hidden_wherever_they_are_read() {
    const KEY: &str = "k3y-0f-the-service";
    let place = Place::new();
    fs::write(place.path("server.py"), SERVER).unwrap();
    let settings = format!(
        "[[mcp.stdio_servers]]\nname = \"other\"\ncommand = \"/usr/bin/python3\"\n\
         args = [\"{}\"]\nenv = {{ SERVICE_KEY = \"{KEY}\" }}\n",
        place.path("server.py").display()
    );
    let file = place.path("given.toml");
    fs::write(&file, settings).unwrap();
    let file = file.display().to_string();
    let mut client = Client::start(place.zareba(&["--config", &file, "mcp", "--runtime", "cli"]));

    let told = client.call("other_tell", json!({}));
    let text = told["content"][0]["text"].as_str().unwrap();
    let (process, shown) = text.split_once(' ').unwrap();
    assert_eq!(shown, "<secret_hidden>");
    let read = client.run(&format!(
        "grep -az SERVICE_KEY /proc/{process}/environ | tr '\\0' '\\n'"
    ));
    assert!(read.starts_with("SERVICE_KEY=<secret_hidden>"), "{read}");
    let listed = client.ask("tools/list", &json!({})).to_string();
    assert!(
        listed.contains("other_tell") && listed.contains("Has <secret_hidden>."),
        "{listed}"
    );
    assert!(!listed.contains(KEY), "{listed}");
    assert_eq!(client.leave(), Some(0));
}

/// By HTTP, without walls, on a port that is free.
const OVER_HTTP: [&str; 7] = [
    "mcp",
    "--runtime",
    "cli",
    "--http",
    "127.0.0.1:0",
    "-o",
    "json",
];

/// The status of a request that makes no sense past the door, showing this.
fn greet(server: &Announced, headers: &str) -> u16 {
    assert!(server.url().ends_with("/mcp"), "{}", server.url());
    let headers = format!(
        "{headers}content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
    );
    request_on(server.connect(), "POST", "/mcp", &headers, b"{}").status
}

#[test]
fn over_http_a_token_is_needed_that_only_its_owner_can_read_hs_2() {
    let place = Place::new();
    let server = Announced::start(place.zareba(&OVER_HTTP));
    let file = server.token_file();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(&file).unwrap().trim_end().to_owned();
    // What is printed ends in logs.
    assert!(!server.told().to_string().contains(&token));
    assert_eq!(greet(&server, ""), 401);
    assert_eq!(greet(&server, "authorization: Bearer wrong\r\n"), 401);
    let shown = bearer(&token);
    // Past the door; what was said there makes no sense.
    assert_ne!(greet(&server, &shown), 401);
    server.end();
    assert!(!fs::exists(&file).unwrap());
}

#[test]
fn over_http_a_token_can_be_given_and_must_be_long_hs_2_hs_3() {
    let place = Place::new();
    let token = "t".repeat(32);
    let mut command = place.zareba(&OVER_HTTP);
    command.env("ZAREBA_MCP_TOKEN", &token);
    let server = Announced::start(command);
    assert_eq!(server.told()["token_file"], Value::Null);
    assert_eq!(greet(&server, ""), 401);
    let shown = bearer(&token);
    assert_ne!(greet(&server, &shown), 401);
    server.end();

    let mut command = place.zareba(&OVER_HTTP);
    let output = command.env("ZAREBA_MCP_TOKEN", "short").output().unwrap();
    assert_eq!(output.status.code(), Some(120));
    let words = ["mcp", "--runtime", "cli", "--http", "0.0.0.0:0"];
    let told = place.output(&words);
    assert_ne!(told.code, Some(0));
    assert!(
        told.stderr.contains("put a proxy with TLS"),
        "{}",
        told.stderr
    );
}
