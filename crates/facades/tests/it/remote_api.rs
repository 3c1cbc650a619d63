//! The remote runtime API: the answers that the client reads, and the life of a runtime.

use http::StatusCode;
use reqwest::{Method, multipart};
use serde_json::{Value, json};
use zareba_facades::openhands::{OpenHandsSettings, UnknownImage};
use zareba_runtime::Sandbox as _;
use zareba_session::Requester;

use crate::{
    client::{ALICE, Api, answer},
    provider::{CPU_MILLIS, Kind, MEMORY_BYTES, Provider},
};

/// What the stock client sends.
fn stock_start(name: &str) -> Value {
    json!({
        "image": "ghcr.io/all-hands-ai/runtime:oh_v0.62.0",
        "command": [
            "/openhands/micromamba/bin/micromamba", "run", "-n", "openhands", "poetry", "run",
            "python", "-u", "-m", "openhands.runtime.action_execution_server", "60000",
            "--working-dir", "/workspace", "--plugins", "agent_skills", "jupyter",
            "--username", "openhands", "--user-id", "1000",
        ],
        "working_dir": "/openhands/code/",
        "environment": { "GIVEN": "a $b", "NO_CHANGE_TIMEOUT_SECONDS": "1" },
        "session_id": name,
        "resource_factor": 2,
    })
}

#[tokio::test]
async fn a_start_is_answered_with_a_runtime_that_works() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    let started = api.start_with(stock_start("sid")).await;
    let id = started["runtime_id"].as_str().unwrap();
    assert_eq!(started["url"], format!("{}/sessions/{id}", provider.url));
    assert_eq!(
        (
            &started["status"],
            &started["session_id"],
            &started["work_hosts"]
        ),
        (&json!("running"), &json!("sid"), &json!({}))
    );
    let image = &started["zareba"]["image"];
    assert_eq!(
        (&image["used"], image["asked"].is_string()),
        (&Value::Null, true)
    );
    let not_applied = started["zareba"]["not_applied"].to_string();
    for part in ["--working-dir", "resource_factor"] {
        assert!(not_applied.contains(part), "{not_applied}");
    }

    let (status, pod) = api.get(&format!("/runtime/{id}")).await;
    assert_eq!((status, &pod["runtime_id"]), (StatusCode::OK, &json!(id)));
    assert_eq!(pod["pod_status"], "ready");

    let runtime = api.runtime(&started);
    assert_eq!(
        runtime.get("/alive").await,
        (StatusCode::OK, json!({ "status": "ok" }))
    );
    assert_eq!(
        runtime.output("echo \"$GIVEN\"; pwd").await,
        format!("a $b\n{}", started["zareba"]["workspace"].as_str().unwrap())
    );
    let names = runtime
        .request(Method::POST, "/list_files")
        .json(&json!({}));
    runtime.output("touch here").await;
    assert_eq!(answer(names).await.1, json!(["here"]));
    let silent = json!({ "action": "run", "args": { "command": "sleep 100" }, "timeout": 30 });
    let (_, observation) = runtime.act(silent).await;
    let suffix = observation["extras"]["metadata"]["suffix"]
        .as_str()
        .unwrap();
    assert!(suffix.contains("no new output after 1 seconds"), "{suffix}");
    provider.stop().await;
}

#[tokio::test]
async fn a_name_means_one_runtime_until_it_is_stopped() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    assert_eq!(api.get("/sessions/sid").await.0, StatusCode::NOT_FOUND);
    let starts = (0..4).map(|_| api.start("sid"));
    let started = futures_util::future::join_all(starts).await;
    for other in &started {
        assert_eq!(other["runtime_id"], started[0]["runtime_id"]);
        assert_eq!(other["session_api_key"], started[0]["session_api_key"]);
    }
    let (_, found) = api.get("/sessions/sid").await;
    for key in ["runtime_id", "url", "session_api_key"] {
        assert_eq!(found[key], started[0][key]);
    }
    assert_eq!(found["status"], "running");
    let (_, listed) = api.get("/list").await;
    assert_eq!(listed["runtimes"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runtimes"][0]["session_id"], "sid");

    let runtime = api.runtime(&started[0]);
    runtime.output("kept=here").await;
    let which = json!({ "runtime_id": started[0]["runtime_id"] });
    for _ in 0..2 {
        assert_eq!(api.post("/stop", which.clone()).await.0, StatusCode::OK);
    }
    assert_eq!(api.get("/sessions/sid").await.1["status"], "stopped");
    assert_eq!(runtime.get("/alive").await.0, StatusCode::NOT_FOUND);
    assert_eq!(api.get("/list").await.1, json!({ "runtimes": [] }));

    let again = api.start("sid").await;
    assert_ne!(again["runtime_id"], started[0]["runtime_id"]);
    assert_eq!(api.runtime(&again).output("echo \"[$kept]\"").await, "[]");
    provider.stop().await;
}

/// What the supervisor of a sandbox was told to let it use: bytes, and thousandths of a processor.
async fn limits(provider: &Provider, started: &Value) -> (u64, u64) {
    let id = started["runtime_id"].as_str().unwrap();
    let session = provider.sessions.get(&id.parse().unwrap()).await.unwrap();
    let sandbox = session.access(Requester::cli()).await.unwrap();
    let init = sandbox.inspect().await.unwrap()["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{init}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", parent.unwrap())).unwrap();
    let words: Vec<&str> = command.split('\0').collect();
    let option = |name: &str| {
        let at = words.iter().position(|word| *word == name).unwrap();
        words[at + 1].parse().unwrap()
    };
    (option("--memory"), option("--cpu-millis"))
}

#[tokio::test]
async fn factors_that_cannot_be_given_are_told() {
    let provider = Provider::start(Kind::Native).await;
    let api = Api::new(&provider, ALICE);
    for (name, factor) in [("a", json!(16)), ("b", json!(0.5)), ("c", json!(-2))] {
        let mut body = stock_start(name);
        body["resource_factor"] = factor;
        let started = api.start_with(body).await;
        let not_applied = started["zareba"]["not_applied"].to_string();
        assert!(not_applied.contains("from 1 to 8"), "{not_applied}");
        assert_eq!(
            limits(&provider, &started).await,
            (MEMORY_BYTES, CPU_MILLIS)
        );
    }
    provider.stop().await;
}

#[tokio::test]
async fn a_paused_runtime_is_unavailable_until_it_is_resumed() {
    let provider = Provider::start(Kind::Native).await;
    let api = Api::new(&provider, ALICE);
    let started = api.start_with(stock_start("sid")).await;
    let not_applied = started["zareba"]["not_applied"].to_string();
    assert!(!not_applied.contains("--working-dir"), "{not_applied}");
    assert!(!not_applied.contains("resource_factor"), "{not_applied}");
    assert_eq!(
        limits(&provider, &started).await,
        (2 * MEMORY_BYTES, 2 * CPU_MILLIS)
    );
    let runtime = api.runtime(&started);
    runtime.output("kept=here").await;
    let which = json!({ "runtime_id": started["runtime_id"] });
    assert_eq!(api.post("/pause", which.clone()).await.0, StatusCode::OK);
    assert_eq!(api.get("/sessions/sid").await.1["status"], "paused");
    assert_eq!(
        runtime.get("/alive").await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    // A large one, whose connection is still good afterwards.
    let action = json!({ "action": "run", "args": { "command": "#".repeat(1_000_000) } });
    for _ in 0..3 {
        let refused = runtime.act(action.clone()).await.0;
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
    }
    for _ in 0..2 {
        assert_eq!(api.post("/resume", which.clone()).await.0, StatusCode::OK);
    }
    assert_eq!(runtime.output("echo $kept; pwd").await, "here\n/workspace");
    // One that went to sleep by itself wakes when it is used.
    let id = started["runtime_id"].as_str().unwrap().parse().unwrap();
    let session = provider.sessions.get(&id).await.unwrap();
    session.pause().await.unwrap();
    assert_eq!(api.get("/sessions/sid").await.1["status"], "paused");
    assert_eq!(runtime.output("echo $kept").await, "here");
    provider.stop().await;
}

#[tokio::test]
async fn another_working_directory_is_made_and_entered_behind_walls() {
    let provider = Provider::start(Kind::Native).await;
    let api = Api::new(&provider, ALICE);
    let mut body = stock_start("sid");
    body["command"] = json!(["--working-dir", "/workspace/it's here"]);
    let started = api.start_with(body).await;
    assert_eq!(
        started["zareba"]["not_applied"]
            .to_string()
            .matches("working")
            .count(),
        0
    );
    let runtime = api.runtime(&started);
    assert_eq!(
        runtime.output("pwd; touch file").await,
        "/workspace/it's here"
    );
    let names = runtime
        .request(Method::POST, "/list_files")
        .json(&json!({}));
    assert_eq!(answer(names).await.1, json!(["file"]));
    provider.stop().await;
}

/// The user is the runtime's; whoever asks for another one is told who it is.
#[tokio::test]
async fn who_runs_commands_is_told_where_it_is_not_who_was_asked_for() {
    let provider = Provider::start(Kind::Native).await;
    let api = Api::new(&provider, ALICE);
    let told = async |name: &str, user: &str, id: u32, more: Value| {
        let mut body = stock_start(name);
        let id = id.to_string();
        body["command"] = json!(["--username", user, "--user-id", id]);
        body["run_as_user"] = more;
        let started = api.start_with(body).await;
        started["zareba"]["not_applied"].to_string()
    };
    let not_applied = told("same", "agent", 1000, json!(1000)).await;
    for option in ["--username", "--user-id", "run_as_user"] {
        assert!(!not_applied.contains(option), "{not_applied}");
    }
    let not_applied = told("other", "root", 0, json!(0)).await;
    for part in [
        "--username root: commands run as `agent` (1000:1000)",
        "--user-id 0: commands run as `agent` (1000:1000)",
        "run_as_user 0: commands run as `agent` (1000:1000)",
    ] {
        assert!(not_applied.contains(part), "{not_applied}");
    }
    for command in [json!(["--username", "a b"]), json!(["--user-id", "root"])] {
        let mut body = stock_start("never");
        body["command"] = command;
        let (status, answer) = api.post("/start", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    }
    assert_eq!(api.get("/sessions/never").await.0, StatusCode::NOT_FOUND);
    provider.stop().await;
}

#[tokio::test]
async fn what_a_runtime_cannot_do_is_said() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    let started = api.start("sid").await;
    let which = json!({ "runtime_id": started["runtime_id"] });
    let (status, body) = api.post("/pause", which).await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{body}");
    assert_eq!(body["detail"], "the runtime `cli` cannot pause a sandbox");
    provider.stop().await;
}

#[tokio::test]
async fn images_are_as_the_operator_says_and_none_is_built() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    let (_, found) = api.get("/image_exists?image=some/image:tag").await;
    assert_eq!(found["exists"], true);
    assert!(found["image"]["upload_time"].is_string());
    assert!(found["image"]["image_size_bytes"].is_u64());
    let (_, prefix) = api.get("/registry_prefix").await;
    assert!(prefix["registry_prefix"].is_string());
    let form = multipart::Form::new()
        .part(
            "context",
            multipart::Part::bytes(vec![b'x'; 3_000_000]).file_name("context.tar.gz"),
        )
        .text("target_image", "some/image:tag")
        .text("tags", "some/image:other");
    let (status, build) = answer(api.request(Method::POST, "/build").multipart(form)).await;
    assert_eq!(status, StatusCode::OK);
    let id = build["build_id"].as_str().unwrap();
    let (_, told) = api.get(&format!("/build_status?build_id={id}")).await;
    assert_eq!(told["status"], "FAILURE");
    assert!(told["error"].as_str().unwrap().contains("builds no images"));
    assert_eq!(
        api.get("/build_status?build_id=other").await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        api.get("/build_status").await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    provider.stop().await;
}

#[tokio::test]
async fn an_operator_may_refuse_images_that_are_not_there() {
    let settings = OpenHandsSettings {
        unknown_image: UnknownImage::Refuse,
        public_url: Some("https://agents.example/base/".to_owned()),
        ..OpenHandsSettings::default()
    };
    let provider = Provider::with(Kind::Cli, settings).await;
    let api = Api::new(&provider, ALICE);
    assert_eq!(
        api.get("/image_exists?image=x").await.1,
        json!({ "exists": false })
    );
    let (status, body) = api.post("/start", stock_start("sid")).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
    let started = api.start_with(json!({ "session_id": "sid" })).await;
    let id = started["runtime_id"].as_str().unwrap();
    assert_eq!(
        started["url"],
        format!("https://agents.example/base/sessions/{id}")
    );
    provider.stop().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_a_detail() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    for (body, expected) in [
        (json!({}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!([]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(["name"]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "session_id": "" }), StatusCode::BAD_REQUEST),
        (json!({ "session_id": "a\u{0}b" }), StatusCode::BAD_REQUEST),
        (
            json!({ "session_id": "s", "command": 7 }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({ "session_id": "s", "environment": { "A B": "1" } }),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let (status, answer) = api.post("/start", body.clone()).await;
        assert_eq!(status, expected, "{body}: {answer}");
        assert!(answer["detail"].is_string(), "{answer}");
    }
    let twice = r#"{"session_id": "s", "environment": {"A": "1", "A": "2"}}"#;
    let request = api
        .request(Method::POST, "/start")
        .header("content-type", "application/json")
        .body(twice);
    let (status, refused) = answer(request).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let request = api.request(Method::POST, "/start").body("{}");
    assert_eq!(answer(request).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let request = api
        .request(Method::POST, "/start")
        .header("content-type", "application/json")
        .body(vec![b' '; 2 * 1024 * 1024]);
    assert_eq!(answer(request).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    provider.stop().await;
}
