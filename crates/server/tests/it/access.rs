//! Who may do what: every route, asked by everyone.

use axum::{Router, routing::get};
use serde_json::{Value, json};
use zareba_api::{Access, Method, Operation, operations};
use zareba_server::{Extension, Principal};

use crate::{fixture::Site, http::Request, http::Response};

/// A request for an operation that gets as far as its handler.
fn request(operation: &Operation, session: &str) -> Request {
    let path = operation
        .path
        .replace("{session}", session)
        .replace("{action}", "0")
        .replace("{digest}", &"0".repeat(64))
        .replace("{key}", "0000000000000000")
        .replace("{port}", "8080")
        .replace("{terminal}", "x")
        .replace("{tool}", "x")
        .replace("{*path}", "x");
    let path = match path.split_once('{') {
        // Parameters of operations that others add.
        Some((start, _)) => format!("{start}x"),
        None => path,
    };
    match (operation.method, &operation.body) {
        (Method::Post, Some(_)) => Request::post(&path, &json!({})),
        (method, _) => Request::new(method.as_str(), &path),
    }
}

fn is_guarded(operation: &&Operation) -> bool {
    !matches!(operation.access, Access::Public | Access::Capability)
}

/// HS-1: whatever is not public is closed to those without a key, with a wrong one, with one in
/// the wrong place and with one that is no longer valid.
#[tokio::test]
async fn no_route_opens_without_a_key() {
    let site = Site::start().await;
    let session = site.session().await;
    let wrong = format!("zrb_{}_{}", "0".repeat(16), "0".repeat(64));
    let mut refused = 0;
    for operation in operations::all().filter(is_guarded) {
        let plain = || request(operation, &session);
        let attempts = [
            plain(),
            plain().key(&wrong),
            plain().key("zrb_x"),
            plain().header("Authorization", &format!("Basic {}", site.admin)),
            plain().key(&site.admin).key(&site.admin),
            plain().header("Cookie", &format!("key={}", site.admin)),
        ];
        for attempt in attempts {
            let answer = site.send(attempt.clone()).await;
            // HS-10 turns the answer to many wrong keys from one to the other.
            match answer.status {
                401 => assert_eq!(answer.error(401), "unauthorized", "{attempt:?}"),
                _ => assert_eq!(answer.error(429), "too_many_requests", "{attempt:?}"),
            }
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
    let unknown = site.send(Request::get("/v1/nothing")).await;
    assert!([401, 429].contains(&unknown.status));
    assert_eq!(site.get("/v1/nothing").await.error(404), "not_found");
    let patched = Request::new("PATCH", "/v1/sessions").key(&site.admin);
    assert_eq!(site.send(patched).await.error(405), "method_not_allowed");
    site.stop().await;
}

/// HS-1: the table and the routes are the same.
#[tokio::test]
async fn every_row_of_the_table_has_a_handler() {
    let site = Site::start().await;
    let hint_of_the_unknown = "see `/v1/openapi.json`";
    let unknown = site.get("/v1/nothing").await.json();
    assert_eq!(unknown["error"]["hint"], hint_of_the_unknown);
    for operation in operations::all() {
        let answer = site
            .send(request(operation, "nobodys").key(&site.admin))
            .await;
        assert_ne!(answer.status, 405, "{}", operation.id);
        if answer.status == 404 {
            let hint = &answer.json()["error"]["hint"];
            assert_ne!(hint, hint_of_the_unknown, "{}", operation.id);
        }
    }
    site.stop().await;
}

/// HS-1: a key of a smaller scope opens nothing that needs a larger one.
#[tokio::test]
async fn scopes_are_enough_or_not() {
    let site = Site::start().await;
    let session = site.session().await;
    let read = site.key(json!({ "owner": "admin", "scope": "read" })).await;
    let use_key = json!({ "owner": "admin", "scope": "session" });
    let using = site.key(use_key).await;
    for operation in operations::all().filter(is_guarded) {
        let (needs_session, needs_admin) = match operation.access {
            Access::Session | Access::SessionOrTicket => (true, false),
            Access::Admin => (true, true),
            _ => (false, false),
        };
        // Streams would not end; the checks in front of them are the same.
        if operation.path.contains("/stream") || operation.path.ends_with("/watch") {
            continue;
        }
        let answer = site.send(request(operation, &session).key(&read)).await;
        assert_eq!(is_forbidden(&answer), needs_session, "{}", operation.id);
        if operation.method == Method::Get || needs_admin {
            let answer = site.send(request(operation, &session).key(&using)).await;
            assert_eq!(is_forbidden(&answer), needs_admin, "{}", operation.id);
        }
    }
    site.stop().await;
}

fn is_forbidden(answer: &Response) -> bool {
    answer.status == 403 && answer.error(403) == "forbidden"
}

/// HS-9: what is somebody else's does not exist: the same answer, byte for byte, as for what
/// nobody has.
#[tokio::test]
async fn foreign_and_unknown_sessions_answer_alike() {
    let site = Site::start().await;
    let session = site.session().await;
    let stranger = json!({ "owner": "stranger", "scope": "session" });
    let stranger = site.key(stranger).await;
    let mut compared = 0;
    for operation in operations::all().filter(is_guarded) {
        if !operation.path.contains("{session}") {
            continue;
        }
        let foreign = site.send(request(operation, &session).key(&stranger)).await;
        let unknown = site
            .send(request(operation, "nobodys").key(&stranger))
            .await;
        let comparable = |answer: &Response, name: &str| {
            let mut body = answer.json();
            body["error"]["request_id"] = Value::Null;
            (answer.status, body.to_string().replace(name, "NAME"))
        };
        let foreign = comparable(&foreign, &session);
        assert_eq!(foreign, comparable(&unknown, "nobodys"), "{}", operation.id);
        if foreign.0 == 404 {
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
    let listed = Request::get("/v1/sessions").key(&stranger);
    let listed = site.send(listed).await.expect(200);
    assert_eq!(listed["sessions"], json!([]));
    site.stop().await;
}

/// HS-10: wrong keys are slowed down and right ones are not, from the very same address.
#[tokio::test]
async fn many_wrong_keys_lock_nobody_out() {
    let site = Site::start().await;
    let mut limited = 0;
    for _ in 0..60 {
        let answer = site.send(Request::get("/v1/status").key("zrb_guess")).await;
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some());
            limited += 1;
        }
    }
    assert!(limited >= 30, "{limited}");
    site.get("/v1/status").await.expect(200);
    site.stop().await;
}

/// HS-5: a name that was made to point here does not make a page ours.
#[tokio::test]
async fn other_hosts_are_misdirected() {
    let site = Site::start_with(|settings| {
        settings.allowed_hosts = vec!["zareba.example".to_owned()];
    })
    .await;
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost:1"] {
        for path in ["/v1/health", "/v1/sessions"] {
            let request = Request::get(path).key(&site.admin).header("Host", host);
            assert_eq!(site.send(request).await.error(421), "misdirected_request");
        }
    }
    let allowed = Request::get("/v1/health").header("Host", "zareba.example");
    site.send(allowed).await.expect(200);
    let port = site.address.port();
    let loopback = Request::get("/v1/health").header("Host", &format!("localhost:{port}"));
    site.send(loopback).await.expect(200);
    site.stop().await;
}

/// HS-6: pages of other origins are refused whatever they ask for, also for a WebSocket.
#[tokio::test]
async fn other_origins_are_refused() {
    let site = Site::start_with(|settings| {
        settings.allowed_origins = vec!["https://ui.example".to_owned()];
    })
    .await;
    let session = site.session().await;
    let socket = format!("/v1/sessions/{session}/events/socket");
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        for path in ["/v1/health", "/v1/sessions", &socket] {
            let request = Request::get(path).key(&site.admin).header("Origin", origin);
            assert_eq!(site.send(request).await.error(403), "forbidden", "{origin}");
        }
        let preflight = Request::new("OPTIONS", "/v1/sessions").header("Origin", origin);
        let answer = site.send(preflight).await;
        assert_eq!(answer.error(403), "forbidden");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let own = format!("http://{}", site.address);
    let own = Request::get("/v1/status")
        .key(&site.admin)
        .header("Origin", &own);
    site.send(own).await.expect(200);
    let listed = Request::get("/v1/status")
        .key(&site.admin)
        .header("Origin", "https://ui.example");
    let listed = site.send(listed).await;
    let allowed = listed.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://ui.example"));
    assert_eq!(listed.header("access-control-allow-credentials"), None);
    let preflight = Request::new("OPTIONS", "/v1/sessions").header("Origin", "https://ui.example");
    assert_eq!(site.send(preflight).await.status, 204);
    site.stop().await;
}

/// HS-19, HS-18.
#[tokio::test]
async fn every_answer_has_the_same_headers() {
    let site = Site::start().await;
    let given = Request::get("/v1/health").header("X-Request-Id", "mine-1");
    let answers = [
        site.send(given).await,
        site.send(Request::get("/v1/status")).await,
        site.get("/v1/nothing").await,
        site.send(Request::get("/v1/health").header("Host", "evil.example"))
            .await,
    ];
    assert_eq!(answers[0].header("x-request-id"), Some("mine-1"));
    for answer in answers {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let policy = answer.header("cross-origin-resource-policy");
        assert_eq!(policy, Some("same-origin"));
        assert!(answer.header("x-request-id").is_some());
        assert_eq!(answer.header("server"), None);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let unfit = Request::get("/v1/health").header("X-Request-Id", "a b\"");
    let answer = site.send(unfit).await;
    assert_eq!(answer.header("x-request-id").unwrap().len(), 32);
    site.stop().await;
}

/// Routes of others stand behind the same check, and learn who asks.
#[tokio::test]
async fn an_extension_is_behind_the_same_door() {
    let routes = Router::new().route(
        "/mine",
        get(|principal: Principal| async move { principal.owner.0 }),
    );
    let public = Router::new().route("/open", get(|| async { "open" }));
    let extension = Extension::new("mine")
        .with(Access::Session, routes)
        .with(Access::Public, public);
    let site = Site::start_extended(|_| {}, Some(extension)).await;
    let stranger = site.send(Request::get("/mine")).await;
    assert_eq!(stranger.error(401), "unauthorized");
    assert_eq!(site.get("/mine").await.text(), "admin");
    let by_header = Request::get("/mine").header("X-Session-API-Key", &site.admin);
    assert_eq!(site.send(by_header).await.text(), "admin");
    let by_header = Request::get("/mine").header("X-API-Key", &site.admin);
    assert_eq!(site.send(by_header).await.text(), "admin");
    assert_eq!(site.send(Request::get("/open")).await.text(), "open");
    let status = site.get("/v1/status").await.expect(200);
    assert_eq!(status["extensions"], json!(["mine"]));
    site.stop().await;
}
