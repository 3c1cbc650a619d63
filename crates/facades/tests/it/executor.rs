//! The action execution API of a session.

use http::StatusCode;
use reqwest::{Method, multipart};
use serde_json::{Value, json};

use crate::{
    client::{ALICE, Api, Runtime, answer},
    provider::{BODIES_MAX, Kind, Provider},
};

async fn started(provider: &Provider) -> (Runtime, String) {
    let api = Api::new(provider, ALICE);
    let started = api.start("sid").await;
    let workspace = started["zareba"]["workspace"].as_str().unwrap().to_owned();
    (api.runtime(&started), workspace)
}

#[tokio::test]
async fn actions_are_recorded_and_answered_as_the_executor_would() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, workspace) = started(&provider).await;
    let path = format!("{workspace}/note.txt");
    let write = json!({ "action": "write", "args": { "path": path, "content": "one\ntwo" } });
    assert_eq!(runtime.act(write).await.1["observation"], "write");
    let read = json!({ "action": "read", "args": { "path": path } });
    let (status, observation) = runtime.act(read).await;
    assert_eq!(
        (status, &observation["content"]),
        (StatusCode::OK, &json!("one\ntwo\n"))
    );
    // Their event stream refuses an event that has a number already.
    for key in ["id", "cause"] {
        assert_eq!(observation.get(key), None, "{observation}");
    }
    let sessions = provider.sessions.list(None, None, 10).await;
    // Two actions, two observations, and what the session says of itself.
    assert!(sessions[0].next_event >= 4, "{sessions:?}");
    provider.stop().await;
}

#[tokio::test]
async fn the_contracts_errors_are_the_executors() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, _) = started(&provider).await;
    let (status, body) = runtime.act(json!({ "action": "nope" })).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        body["detail"]
            .as_str()
            .unwrap()
            .starts_with("Internal server error: ")
    );
    let empty = runtime
        .request(Method::POST, "/execute_action")
        .json(&json!({}));
    assert_eq!(answer(empty).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let expected = (StatusCode::NOT_FOUND, json!({ "detail": "Not Found" }));
    assert_eq!(runtime.get("/nope").await, expected);
    assert_eq!(
        runtime.get("/vscode/connection_token").await.1,
        json!({ "token": null })
    );
    let servers = runtime
        .request(Method::POST, "/update_mcp_server")
        .json(&json!([]));
    assert_eq!(answer(servers).await.0, StatusCode::OK);
    let (_, info) = runtime.get("/server_info").await;
    assert!(
        info["uptime"].is_f64() && info["resources"]["memory"]["rss"].is_u64(),
        "{info}"
    );
    provider.stop().await;
}

#[tokio::test]
async fn a_large_observation_comes_whole() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, workspace) = started(&provider).await;
    runtime
        .output("yes 0123456789abcdef | head -c 4000000 > large")
        .await;
    let read = json!({ "action": "read", "args": { "path": format!("{workspace}/large") } });
    let (_, observation) = runtime.act(read).await;
    let content = observation["content"].as_str().unwrap();
    assert_eq!(content.len(), 4_000_000);
    assert!(content.starts_with("0123456789abcdef\n0123"));
    provider.stop().await;
}

/// RH-2: a name under which an action runs once makes repeating it harmless.
#[tokio::test]
async fn an_action_with_a_name_runs_once_rh_2() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, _) = started(&provider).await;
    let action = |command: &str| json!({ "action": "run", "args": { "command": command }, "once": "a-name", "timeout": 30 });
    let (_, first) = runtime.act(action("echo x >> times; cat times")).await;
    let (_, second) = runtime.act(action("echo x >> times; cat times")).await;
    assert_eq!(
        (&first["content"], &second["content"]),
        (&json!("x"), &json!("x"))
    );
    let (_, other) = runtime.act(action("echo something else")).await;
    assert_eq!(other["observation"], "error", "{other}");
    provider.stop().await;
}

#[tokio::test]
async fn files_move_in_and_out() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, workspace) = started(&provider).await;
    let part = multipart::Part::bytes(vec![b'x'; 2_000_000]).file_name("up.bin");
    let upload = runtime
        .request(Method::POST, "/upload_file")
        .query(&[
            ("destination", format!("{workspace}/made")),
            ("recursive", "false".into()),
        ])
        .multipart(multipart::Form::new().part("file", part));
    let (status, told) = answer(upload).await;
    assert_eq!(
        (status, &told["filename"]),
        (StatusCode::OK, &json!("up.bin")),
        "{told}"
    );
    let list = |body: Value| answer(runtime.request(Method::POST, "/list_files").json(&body));
    assert_eq!(list(json!({})).await.1, json!(["made/"]));
    assert_eq!(list(json!({ "path": "made" })).await.1, json!(["up.bin"]));
    assert_eq!(list(json!({ "path": "/missing" })).await.1, json!([]));

    let download = runtime
        .request(Method::GET, "/download_files")
        .query(&[("path", &workspace)]);
    let archive = download.send().await.unwrap();
    assert_eq!(archive.headers()["content-type"], "application/zip");
    let bytes = archive.bytes().await.unwrap();
    assert!(
        bytes.starts_with(b"PK") && bytes.len() > 1000,
        "{} bytes",
        bytes.len()
    );

    for (request, detail) in [
        (
            runtime
                .request(Method::GET, "/download_files")
                .query(&[("path", "/missing/x")]),
            "404: File not found",
        ),
        (
            runtime
                .request(Method::GET, "/download_files")
                .query(&[("path", "x")]),
            "400: Path must be an absolute path",
        ),
    ] {
        let (status, body) = answer(request).await;
        let expected = (
            StatusCode::INTERNAL_SERVER_ERROR,
            json!({ "detail": detail }),
        );
        assert_eq!((status, body), expected);
    }
    provider.stop().await;
}

#[tokio::test]
async fn a_hidden_command_that_cannot_run_is_answered_as_a_command() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, _) = started(&provider).await;
    let hidden = |command: &str| {
        let args = json!({ "command": command, "hidden": true });
        json!({ "action": "run", "args": args, "once": "a-name", "timeout": 30 })
    };
    runtime.act(hidden("true")).await;
    let (status, refused) = runtime.act(hidden("false")).await;
    assert_eq!(
        (status, &refused["observation"]),
        (StatusCode::OK, &json!("run")),
        "{refused}"
    );
    assert_eq!(refused["extras"]["metadata"]["exit_code"], -1);
    provider.stop().await;
}

/// Lets the server go on until something is so, which must be soon.
async fn until(mut is_so: impl FnMut() -> bool) {
    let going_on = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, going_on).await.unwrap();
}

/// HS-12: what a body takes is taken before it is read.
#[tokio::test]
async fn bodies_that_do_not_end_are_bounded_together() {
    use tokio::io::AsyncWriteExt as _;
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, _) = started(&provider).await;
    let url = runtime.url.strip_prefix("http://").unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let head = format!(
        "POST /{path}/execute_action HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {ALICE}\r\n\
         Content-Type: application/json\r\nContent-Length: {BODIES_MAX}\r\n\r\n{{"
    );
    let mut unfinished = tokio::net::TcpStream::connect(host).await.unwrap();
    unfinished.write_all(head.as_bytes()).await.unwrap();
    until(|| provider.keys.body_bytes() != 0).await;
    let act = json!({ "action": "run", "args": { "command": "true" } });
    let refused = runtime.act(act.clone()).await.0;
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    drop(unfinished);
    until(|| provider.keys.body_bytes() == 0).await;
    assert_eq!(runtime.act(act).await.0, StatusCode::OK);
    provider.stop().await;
}

/// HS-12: an action that its client does not wait for still counts.
#[tokio::test]
async fn an_action_counts_until_it_has_its_observation() {
    let provider = Provider::start(Kind::Cli).await;
    let (runtime, workspace) = started(&provider).await;
    runtime.output("mkfifo valve").await;
    let action = json!({ "action": "run", "args": { "command": "cat valve", "blocking": true } });
    let body = json!({ "action": action });
    let request = runtime.request(Method::POST, "/execute_action").json(&body);
    let impatient = request.timeout(std::time::Duration::from_millis(500));
    assert!(impatient.send().await.unwrap_err().is_timeout());
    assert_ne!(provider.keys.body_bytes(), 0);
    let valve = std::path::Path::new(&workspace).join("valve");
    let opened = tokio::task::spawn_blocking(move || std::fs::write(valve, "go"));
    opened.await.unwrap().unwrap();
    until(|| provider.keys.body_bytes() == 0).await;
    provider.stop().await;
}
