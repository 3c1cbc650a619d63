//! Every row of the recorded traffic of the original server, and the texts beside it.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, sync::atomic::Ordering};

use serde_json::{Value, json};
use zareba_protocol::{Action, RunCommand};
use zareba_wire::{Upload, UploadTreatment};

use crate::{
    fake::{ARCHIVE_PIECES, FakeService, Running, keyed, run_observation, start},
    http::{Ask, get, post},
};

const KEY: &str = "testkey";
const RECORDED: &str = include_str!("../fixtures/http_endpoints.json");

fn furnish(service: &FakeService) {
    let workspace = service.root.path().join("workspace");
    for directory in [".hid", "d1"] {
        fs::create_dir_all(workspace.join(directory)).unwrap();
    }
    symlink("d1", workspace.join("link")).unwrap();
    symlink("nowhere", workspace.join("dangling")).unwrap();
    for file in [".h2", "big.txt", "test.txt"] {
        fs::write(workspace.join(file), file).unwrap();
    }
}

fn recorded_request(request: &Value) -> Ask {
    let method = match request["method"].as_str().unwrap() {
        "GET" => "GET",
        "POST" => "POST",
        other => panic!("{other}"),
    };
    let mut target = request["path"].as_str().unwrap().to_owned();
    for (index, (name, value)) in request["params"]
        .as_object()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let separator = if index == 0 { '?' } else { '&' };
        target.push_str(&format!("{separator}{name}={}", value.as_str().unwrap()));
    }
    let mut ask = Ask::new(method, &target);
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        ask = ask.header(name, value.as_str().unwrap());
    }
    if let Some(name) = request.pointer("/multipart/file") {
        ask = ask.file(name.as_str().unwrap(), b"content");
    }
    match request.get("json") {
        Some(document) => ask.json(document),
        None => ask,
    }
}

/// All paths of keys in a document; numbers differ from machine to machine.
fn keys(document: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in document.as_object().into_iter().flatten() {
        let path = format!("{prefix}/{key}");
        keys(value, &path, found);
        found.insert(path);
    }
}

#[tokio::test]
async fn recorded_traffic_is_answered_as_the_original_answered_it() {
    let server = start(keyed(KEY));
    furnish(&server.service);
    let rows: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    let mut replayed = 0;
    for row in &rows {
        let path = row["request"]["path"].as_str().unwrap();
        let expected = &row["response"];
        // A stream does not end, so that it has its own test.
        if expected.get("first_lines").is_some() {
            continue;
        }
        let answer = recorded_request(&row["request"]).of(&server.endpoint).await;
        assert_eq!(json!(answer.status), expected["status"], "{row}");
        for (name, value) in expected["headers"].as_object().into_iter().flatten() {
            assert_eq!(answer.header(name), value.as_str(), "{row}");
        }
        if path == "/server_info" {
            let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
            keys(&expected["json"], "", &mut wanted);
            keys(&answer.json(), "", &mut found);
            assert_eq!(found, wanted);
        } else if let Some(document) = expected.get("json") {
            assert_eq!(&answer.json(), document, "{row}");
        } else {
            assert_eq!(answer.body, ARCHIVE_PIECES.concat(), "{row}");
        }
        replayed += 1;
    }
    assert_eq!((replayed, rows.len()), (21, 22));
    server.stop().await;
}

#[tokio::test]
async fn an_action_reaches_the_service_and_its_observation_comes_back() {
    let server = start(keyed(KEY));
    let action = json!({"action": "run", "args": {"command": "ls"}, "timeout": 3.5, "extra": 1});
    let ask = post("/execute_action")
        .key(KEY)
        .json(&json!({ "action": action }));
    let answer = ask.of(&server.endpoint).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, run_observation("ls", "ls").to_value())
    );
    let seen = server.service.actions.lock().unwrap().clone();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].timeout, Some(3.5));
    assert_eq!(seen[0].action, Action::Run(RunCommand::new("ls")));
}

async fn check_execute(server: &Running, body: &[u8], status: u16, key: &str, text: &str) {
    let ask = post("/execute_action")
        .key(KEY)
        .body("application/json", body);
    let answer = ask.of(&server.endpoint).await;
    let shown = String::from_utf8_lossy(body);
    assert_eq!(
        (answer.status, answer.json()[key].as_str()),
        (status, Some(text)),
        "{shown}"
    );
}

/// Another reader might take the first of the two. The original takes the last.
#[tokio::test]
async fn an_action_with_a_name_that_comes_twice_is_refused() {
    let server = start(keyed(KEY));
    for body in [
        r#"{"action": {"action": "run", "args": {"command": "a"}}, "x": {"y": 1, "y": 2}}"#,
        r#"{"action": {"action": "run", "args": {"command": "a", "command": "b"}}}"#,
        r#"{"action": {"action": "run", "args": {"command": "a"}, "extra": [{"y": 1, "y": 2}]}}"#,
    ] {
        let ask = post("/execute_action")
            .key(KEY)
            .body("application/json", body.as_bytes());
        let answer = ask.of(&server.endpoint).await;
        assert!(matches!(answer.status, 422 | 500), "{body}");
    }
    assert_eq!(server.service.actions.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn bodies_without_a_usable_action_are_refused_in_the_originals_words() {
    let server = start(keyed(KEY));
    for (body, errors) in [
        (
            r#"{"x": [1.5, null, "a'b"]}"#,
            r#"[{'type': 'missing', 'loc': ('body', 'action'), 'msg': 'Field required', 'input': {'x': [1.5, None, "a'b"]}}]"#,
        ),
        (
            "[1]",
            "[{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should be a valid dictionary or object to extract fields from', 'input': [1]}]",
        ),
        (
            r#"{"action": "run"}"#,
            "[{'type': 'dict_type', 'loc': ('body', 'action'), 'msg': 'Input should be a valid dictionary', 'input': 'run'}]",
        ),
        (
            "{oops",
            "[{'type': 'json_invalid', 'loc': ('body', 2), 'msg': 'JSON decode error', 'input': {}, 'ctx': {'error': 'key must be a string at line 1 column 2'}}]",
        ),
    ] {
        check_execute(&server, body.as_bytes(), 422, "errors", errors).await;
    }
    for (body, detail) in [
        (
            r#"{"action": {"observation": "null"}}"#,
            "400: Invalid action type",
        ),
        (
            r#"{"action": {"action": "call_tool_mcp", "args": {"name": "x"}}}"#,
            "'ActionExecutor' object has no attribute 'call_tool_mcp'",
        ),
        (
            r#"{"action": {"action": "run", "args": {"command": "ls"}, "source": "martian"}}"#,
            "'martian' is not a valid EventSource",
        ),
    ] {
        let detail = format!("Internal server error: {detail}");
        check_execute(&server, body.as_bytes(), 500, "detail", &detail).await;
    }
    let deep = format!(
        "{{\"action\": {{\"a\": {}1{}}}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let ask = post("/execute_action")
        .key(KEY)
        .body("application/json", deep.as_bytes());
    assert_eq!(ask.of(&server.endpoint).await.status, 422);
    assert!(server.service.actions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn liveness_follows_the_service() {
    let server = start(keyed(KEY));
    let alive = get("/alive").of(&server.endpoint).await;
    assert_eq!((alive.status, alive.json()), (200, json!({"status": "ok"})));
    server.service.ready.store(false, Ordering::SeqCst);
    let waiting = get("/alive").of(&server.endpoint).await;
    assert_eq!(
        (waiting.status, waiting.json()),
        (503, json!({"status": "not initialized"}))
    );
}

#[tokio::test]
async fn idle_time_starts_again_with_each_action_and_uptime_does_not() {
    let server = start(keyed(KEY));
    let action = json!({"action": {"action": "run", "args": {"command": "ls"}}});
    post("/execute_action")
        .key(KEY)
        .json(&action)
        .of(&server.endpoint)
        .await;
    let info = get("/server_info").of(&server.endpoint).await.json();
    let (uptime, idle) = (
        info["uptime"].as_f64().unwrap(),
        info["idle_time"].as_f64().unwrap(),
    );
    assert!(0.0 < idle && idle < uptime, "{info}");
}

#[tokio::test]
async fn unknown_methods_get_a_json_405_and_other_types_a_415() {
    let server = start(keyed(KEY));
    let answer = get("/execute_action").key(KEY).of(&server.endpoint).await;
    assert_eq!(
        (answer.status, answer.json()),
        (405, json!({"detail": "Method Not Allowed"}))
    );
    assert_eq!(answer.header("allow"), Some("POST"));
    let answer = post("/alive").of(&server.endpoint).await;
    assert_eq!(
        (answer.status, answer.json()),
        (405, json!({"detail": "Method Not Allowed"}))
    );
    let ask = post("/execute_action").key(KEY).body("text/plain", b"{}");
    assert_eq!(ask.of(&server.endpoint).await.status, 415);
}

#[tokio::test]
async fn a_list_request_that_is_no_object_gets_the_general_error() {
    let server = start(keyed(KEY));
    let general = json!({"detail": "An unexpected error occurred. Please try again later."});
    for body in ["[]", "{", "", r#"{"path": 1}"#] {
        let ask = post("/list_files")
            .key(KEY)
            .body("application/json", body.as_bytes());
        let answer = ask.of(&server.endpoint).await;
        assert_eq!(
            (answer.status, answer.json()),
            (500, general.clone()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn uploads_arrive_whole_and_with_their_treatment() {
    let server = start(keyed(KEY));
    let content: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let target = "/upload_file?destination=%2Fworkspace%2Fa%20b&recursive=false";
    let answer = post(target)
        .key(KEY)
        .file("up.bin", &content)
        .of(&server.endpoint)
        .await;
    let expected =
        json!({"filename": "up.bin", "destination": "/workspace/a b", "recursive": false});
    assert_eq!((answer.status, answer.json()), (200, expected));
    let stored = server.service.root.path().join("workspace/a b/up.bin");
    assert!(fs::read(stored).unwrap() == content);

    let answer = post("/upload_file?recursive=1")
        .key(KEY)
        .file("x.tar", b"")
        .of(&server.endpoint)
        .await;
    let expected = json!({"filename": "x.tar", "destination": "/", "recursive": true});
    assert_eq!((answer.status, answer.json()), (200, expected));
    let seen = server.service.uploads.lock().unwrap();
    let unpack = Upload {
        file_name: "x.tar".into(),
        destination: "/".into(),
        treatment: UploadTreatment::Unpack,
        room: None,
    };
    assert_eq!(seen[1], (unpack, Ok(0)));
}

#[tokio::test]
async fn uploads_that_cannot_be_stored_are_refused_and_the_connection_survives() {
    let server = start(keyed(KEY));
    fs::write(server.service.root.path().join("file"), "x").unwrap();
    let ask = post("/upload_file?destination=/file")
        .key(KEY)
        .file("n", &[b'x'; 300_000]);
    let answer = ask.of(&server.endpoint).await;
    let expected = json!({
        "detail": "[Errno 20] Not a directory: '/file/n'",
        "code": "not_a_directory",
    });
    assert_eq!((answer.status, answer.json()), (500, expected));

    let missing =
        "[{'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required', 'input': None}]";
    let other = b"--xyz\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--xyz--\r\n";
    for ask in [
        post("/upload_file").body("multipart/form-data; boundary=xyz", other),
        post("/upload_file").json(&json!({})),
        post("/upload_file"),
    ] {
        let answer = ask.key(KEY).of(&server.endpoint).await;
        assert_eq!(
            (answer.status, answer.json()["errors"].as_str()),
            (422, Some(missing))
        );
    }
    let ask = post("/upload_file?recursive=maybe")
        .key(KEY)
        .file("x.zip", b"");
    assert_eq!(ask.of(&server.endpoint).await.status, 422);
    let cut = b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhalf";
    let ask = post("/upload_file")
        .key(KEY)
        .body("multipart/form-data; boundary=xyz", cut);
    assert_eq!(ask.of(&server.endpoint).await.status, 500);
    assert!(!server.service.root.path().join("f").exists());
}

#[tokio::test]
async fn downloads_choose_their_format_and_need_a_path() {
    let server = start(keyed(KEY));
    fs::create_dir(server.service.root.path().join("d")).unwrap();
    let answer = get("/download_files?path=/d&format=tar")
        .key(KEY)
        .of(&server.endpoint)
        .await;
    assert_eq!(answer.header("content-type"), Some("application/x-tar"));
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"d.tar\"")
    );
    assert_eq!(answer.body, b"PK first second last tar");
    let answer = get("/download_files").key(KEY).of(&server.endpoint).await;
    let missing =
        "[{'type': 'missing', 'loc': ('query', 'path'), 'msg': 'Field required', 'input': None}]";
    assert_eq!(
        (answer.status, answer.json()["errors"].as_str()),
        (422, Some(missing))
    );
    let answer = get("/download_files?path=/d&format=rar")
        .key(KEY)
        .of(&server.endpoint)
        .await;
    assert_eq!(answer.status, 422);
}
