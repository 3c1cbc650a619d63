//! Our server, asked by a client of the official SDK over a pair of streams.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{
        CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest,
        ProgressNotificationParam,
    },
    service::{NotificationContext, PeerRequestOptions},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::watch,
};
use zareba_mcp::{client::Pins, server::serve_stdio};
use zareba_tools::Registry;

use crate::fixture::{Bench, call, connect, text};

#[tokio::test]
async fn commands_keep_their_shell_and_say_how_they_ended() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    let made = call(
        &client,
        "run_command",
        json!({"command": "mkdir -p d && cd d && X=1"}),
    )
    .await;
    assert_eq!(made.is_error, Some(false));
    let asked = json!({"command": "echo $X; pwd; exit_with() { return 7; }; exit_with"});
    let result = call(&client, "run_command", asked).await;
    let answer = text(&result);
    assert!(
        answer.starts_with("1\n") && answer.contains("/d\n[exit code 7]"),
        "{answer}"
    );
    let facts = serde_json::to_value(&result).unwrap();
    assert_eq!(facts["_meta"]["zareba/exit_code"], 7);
    bench.close().await;
}

#[tokio::test]
async fn a_command_that_goes_on_can_be_waited_for_typed_at_and_interrupted() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    let asked = json!({"command": "read line; echo got $line; sleep 1000", "timeout": 0.3});
    let running = text(&call(&client, "run_command", asked).await);
    assert!(running.contains("The command still runs."), "{running}");
    let typed = json!({"text": "hello", "timeout": 0.5});
    let typed = text(&call(&client, "send_input", typed).await);
    assert!(typed.contains("got hello"), "{typed}");
    let more = text(&call(&client, "read_output", json!({"timeout": 0.1})).await);
    assert!(more.contains("The command still runs."), "{more}");
    let ended = text(&call(&client, "interrupt", json!({})).await);
    assert!(ended.contains("[exit code 130]"), "{ended}");
    bench.close().await;
}

#[tokio::test]
async fn commands_in_the_background_have_shells_of_their_own() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    let asked = json!({"command": "sleep 1000", "background": true});
    let background = call(&client, "run_command", asked).await;
    let facts = serde_json::to_value(&background).unwrap();
    let shell = facts["_meta"]["zareba/shell"].as_str().unwrap().to_owned();
    assert!(text(&background).contains(&shell), "{}", text(&background));
    let beside = text(&call(&client, "run_command", json!({"command": "echo beside"})).await);
    assert!(beside.starts_with("beside\n"), "{beside}");
    let ended = text(&call(&client, "interrupt", json!({"shell": &shell})).await);
    assert!(ended.contains("[exit code 130]"), "{ended}");
    bench.close().await;
}

#[tokio::test]
async fn long_output_is_cut_and_the_rest_can_be_read() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    let asked = json!({"command": "seq -f %0100.0f 1 1000"});
    let answer = text(&call(&client, "run_command", asked).await);
    assert!(answer.chars().count() < 31_000, "{}", answer.len());
    let line = |number: u32| format!("{number:0100}\n");
    assert!(
        answer.starts_with(&line(1)) && answer.contains(&line(1000)),
        "{answer}"
    );
    assert!(!answer.contains(&line(500)), "{answer}");
    let (_, rest) = answer.split_once("All of it is in ").unwrap();
    let file = rest.split(';').next().unwrap();
    let asked = json!({"path": file, "offset": 500, "limit": 2});
    let part = text(&call(&client, "read_file", asked).await);
    let expected = [line(500), line(501)].concat();
    assert!(part.starts_with(&expected), "{part}");
    assert!(
        part.ends_with("[Lines 500 to 501 are shown. Read on with offset 502.]"),
        "{part}"
    );
    bench.close().await;
}

#[tokio::test]
async fn files_are_written_read_listed_changed_and_found() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    let path = bench.path("notes.txt");
    let asked = json!({"path": &path, "content": "one\ntwo\n"});
    assert_eq!(
        call(&client, "write_file", asked).await.is_error,
        Some(false)
    );
    let read = text(&call(&client, "read_file", json!({"path": &path})).await);
    assert_eq!(read, "one\ntwo\n");
    let asked = json!({"command": "str_replace", "path": &path, "old_str": "two", "new_str": "2"});
    assert!(text(&call(&client, "edit_file", asked).await).contains("has been edited"));
    let asked = json!({"command": "insert", "path": &path, "insert_line": 0, "new_str": "zero"});
    call(&client, "edit_file", asked).await;
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(read("notes.txt"), "zero\none\n2\n");
    call(
        &client,
        "edit_file",
        json!({"command": "undo_edit", "path": &path}),
    )
    .await;
    assert_eq!(read("notes.txt"), "one\n2\n");
    let listed = text(&call(&client, "list_files", json!({})).await);
    assert!(listed.lines().any(|name| name == "notes.txt"), "{listed}");
    let found = text(&call(&client, "find_files", json!({"pattern": "*.txt"})).await);
    assert!(
        found.contains("notes.txt") && !found.contains("server.py"),
        "{found}"
    );
    let found = text(&call(&client, "search_files", json!({"pattern": "^one"})).await);
    assert!(
        found.contains("notes.txt") && found.contains("one"),
        "{found}"
    );
    bench.close().await;
}

#[tokio::test]
async fn paths_start_in_the_workspace_and_pictures_are_shown() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    std::fs::write(bench.path("dot.png"), b"\x00\xff").unwrap();
    call(
        &client,
        "run_command",
        json!({"command": "mkdir sub && cd sub"}),
    )
    .await;
    let asked = json!({"command": "create", "path": "made.txt", "file_text": "one\n"});
    assert_eq!(
        call(&client, "edit_file", asked).await.is_error,
        Some(false)
    );
    let asked =
        json!({"command": "str_replace", "path": "made.txt", "old_str": "one", "new_str": "1"});
    assert_eq!(
        call(&client, "edit_file", asked).await.is_error,
        Some(false)
    );
    assert_eq!(
        text(&call(&client, "read_file", json!({"path": "made.txt"})).await),
        "1\n"
    );
    call(
        &client,
        "write_file",
        json!({"path": "sub/x", "content": "x"}),
    )
    .await;
    assert_eq!(std::fs::read_to_string(bench.path("sub/x")).unwrap(), "x\n");
    let found = text(&call(&client, "find_files", json!({"pattern": "made.*"})).await);
    assert!(found.contains("made.txt"), "{found}");
    let shown = call(&client, "read_file", json!({"path": "dot.png"})).await;
    let shown = serde_json::to_value(&shown.content).unwrap();
    let expected = json!([{"type": "image", "data": "AP8=", "mimeType": "image/png"}]);
    assert_eq!(shown, expected);
    bench.close().await;
}

#[tokio::test]
async fn a_client_that_has_closed_its_end_is_told_nothing_more() {
    let bench = Bench::new().await;
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let served = tokio::spawn(serve_stdio(bench.server(), input, output));
    let (hears, mut says) = tokio::io::split(theirs);
    let mut hears = BufReader::new(hears).lines();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let run = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run_command", "arguments": {"command": "touch begun; sleep 1"},
    }});
    for message in [begin, ready, run] {
        says.write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    let first: Value = serde_json::from_str(&hears.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(first["id"], 1);
    bench.until_there("begun").await;
    says.shutdown().await.unwrap();
    assert_eq!(hears.next_line().await.unwrap(), None);
    served.await.unwrap().unwrap();
    bench.close().await;
}

#[tokio::test]
async fn what_goes_wrong_is_a_result_that_says_so() {
    let bench = Bench::new().await;
    let client = bench.client().await;
    for (tool, arguments, expected) in [
        (
            "read_file",
            json!({"path": "/no/such/file"}),
            "/no/such/file",
        ),
        (
            "run_command",
            json!({"comand": "true"}),
            "unknown field `comand`",
        ),
        (
            "run_command",
            json!({"command": "true", "shell": "a b"}),
            "cannot name a shell",
        ),
        (
            "edit_file",
            json!({"command": "undo_edit", "path": "/no/such"}),
            "/no/such",
        ),
        ("send_input", json!({"text": ""}), "nothing to type"),
        ("interrupt", json!({}), "No previous running command"),
    ] {
        let result = call(&client, tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}");
        assert!(
            text(&result).contains(expected),
            "{tool}: {}",
            text(&result)
        );
        let structured = result.structured_content.unwrap();
        assert!(structured["error"]["class"].is_string(), "{structured}");
    }
    let request = CallToolRequestParams::new("no_such_tool");
    let refused = client.call_tool(request).await.unwrap_err().to_string();
    assert!(
        refused.contains("there is no tool `no_such_tool`"),
        "{refused}"
    );
    bench.close().await;
}

/// Counts what it is told of progress.
#[derive(Clone, Default)]
struct Listener {
    told: Arc<watch::Sender<u32>>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(
        &self,
        _progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.told.send_modify(|told| *told += 1);
    }
}

#[tokio::test]
async fn a_call_tells_its_progress_and_a_cancelled_one_interrupts_its_command() {
    let bench = Bench::new().await;
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = bench.server();
    tokio::spawn(async move {
        let (input, output) = tokio::io::split(ours);
        serve_stdio(server, input, output).await
    });
    let listener = Listener::default();
    let mut told = listener.told.subscribe();
    let client = listener.serve(theirs).await.unwrap();
    let arguments = json!({"command": "trap 'touch stopped' INT; sleep 1000 & wait; trap - INT"});
    let request = CallToolRequestParams::new("run_command")
        .with_arguments(arguments.as_object().cloned().unwrap());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
    let options = PeerRequestOptions::no_options();
    let handle = client
        .send_cancellable_request(request, options)
        .await
        .unwrap();
    let twice = told.wait_for(|told| *told >= 2);
    let waited = tokio::time::timeout(Duration::from_secs(20), twice).await;
    assert!(
        waited.is_ok_and(|told| told.is_ok()),
        "no progress was told"
    );
    handle.cancel(Some("enough".to_owned())).await.unwrap();
    bench.until_there("stopped").await;
    bench.close().await;
}

#[tokio::test]
async fn tools_of_other_servers_stand_beside_our_own() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = Registry::new();
    registry.add_all(servers.tools()).unwrap();
    let (sender, ready) = watch::channel(true);
    let client = connect(bench.server().with_tools(registry, ready)).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert!(
        names.contains(&"run_command") && names.contains(&"good_echo"),
        "{names:?}"
    );
    let echoed = call(&client, "good_echo", json!({"text": "hello"})).await;
    assert_eq!(
        (text(&echoed), echoed.is_error),
        ("hello".to_owned(), Some(false))
    );
    let failed = call(&client, "good_fail", json!({})).await;
    assert_eq!(
        (text(&failed), failed.is_error),
        ("it failed".to_owned(), Some(true))
    );
    let refused = call(&client, "good_echo", json!({"text": 3})).await;
    assert_eq!(refused.is_error, Some(true), "{}", text(&refused));
    servers.close().await;
    drop(sender);
    bench.close().await;
}
