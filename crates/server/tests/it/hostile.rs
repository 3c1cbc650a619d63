//! Clients that mean no good, or know no better.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use zareba_wire::server::LIVENESS_RESERVE;

use crate::{
    fixture::Site,
    http::{Request, Response, send_raw},
};

/// §14: nothing is changed by what cannot be understood.
#[tokio::test]
async fn bodies_that_make_no_sense_are_refused() {
    let site = Site::start().await;
    let post = |body: &str| {
        Request::new("POST", "/v1/sessions")
            .key(&site.admin)
            .header("Content-Type", "application/json")
            .body(body.as_bytes().to_vec())
    };
    let deep = format!("{{\"labels\":{}{}}}", "[".repeat(70), "]".repeat(70));
    for (body, code) in [
        ("", "invalid_request"),
        ("{", "invalid_request"),
        ("{} {}", "invalid_request"),
        ("null", "invalid_request"),
        (r#"{"id": "a/b"}"#, "invalid_request"),
        (r#"{"imgae": "x"}"#, "invalid_request"),
        (r#"{"no_change_timeout": 0}"#, "invalid_request"),
        (r#"{"limits": {"idle_timout": 5}}"#, "invalid_request"),
        // What is an object is not an array, and has each name once.
        (r#"["a", null]"#, "invalid_request"),
        ("[]", "invalid_request"),
        (r#"{"limits": [5]}"#, "invalid_request"),
        (r#"{"id": "a", "id": "a"}"#, "invalid_request"),
        (r#"{"labels": {"x": "1", "x": "2"}}"#, "invalid_request"),
        (r#"{"timeout": "5"}"#, "invalid_request"),
        (deep.as_str(), "limit_exceeded"),
    ] {
        let answer = site.send(post(body)).await;
        assert_eq!(answer.error(400), code, "{body}");
    }
    let nested = site
        .send(post(r#"{"limits": {"when_idle": "dance"}}"#))
        .await;
    let message = nested.json()["error"]["message"].to_string();
    assert!(message.contains("limits.when_idle"), "{message}");
    for (field, body) in [
        ("no_change_timeout", r#"{"no_change_timeout": 0}"#),
        ("timeout", r#"{"timeout": 0}"#),
        ("limits.idle_timeout", r#"{"limits": {"idle_timeout": 0}}"#),
        ("limits.life_max", r#"{"limits": {"life_max": 0.0}}"#),
    ] {
        let answer = site.send(post(body)).await;
        assert_eq!(answer.error(400), "invalid_request", "{body}");
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap();
        let expected = format!("`{field}`: it must be more than 0 seconds");
        assert!(message.contains(&expected), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
    let invalid = site.send(post("\"\u{1}\"")).await;
    assert_eq!(invalid.error(400), "invalid_request");
    let bytes = post("{\"image\": \"").body(b"{\"image\": \"\xff\"}".to_vec());
    assert_eq!(site.send(bytes).await.error(400), "invalid_request");
    assert_eq!(
        site.get("/v1/sessions").await.expect(200)["sessions"],
        json!([])
    );
    site.stop().await;
}

/// Another reader might take the first of the two.
#[tokio::test]
async fn an_action_with_a_name_that_comes_twice_is_refused() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    for (body, name) in [
        (
            r#"{"action": "run", "action": "read", "args": {"command": "touch a"}}"#,
            "action",
        ),
        (
            r#"{"action": "run", "args": {"command": "touch a", "command": "touch b"}}"#,
            "command",
        ),
        (
            r#"{"action": "run", "args": {"command": "touch a"}, "args": {}}"#,
            "args",
        ),
    ] {
        let answer = site
            .send(Request {
                body: Some(body.as_bytes().to_vec()),
                ..Request::post(&path, &json!({})).key(&site.admin)
            })
            .await;
        assert_eq!(answer.error(400), "invalid_request", "{body}");
        let expected = format!("`{name}` comes twice");
        assert!(answer.text().contains(&expected), "{}", answer.text());
    }
    let events = format!("/v1/sessions/{session}/events");
    let events = site.get(events).await.expect(200);
    assert!(!events.to_string().contains("touch"), "{events}");
    site.stop().await;
}

/// A reader of structs would take its items for the fields, in their order.
#[tokio::test]
async fn a_call_of_a_tool_that_is_an_array_is_refused() {
    let site = Site::start().await;
    let session = site.session().await;
    let call = site.post(
        format!("/v1/sessions/{session}/tools/some"),
        json!([{ "x": 1 }]),
    );
    let answer = call.await;
    assert_eq!(answer.error(400), "invalid_request");
    assert!(answer.text().contains("sequence"), "{}", answer.text());
    site.stop().await;
}

/// HS-7: what a page of another site can send without asking is refused.
#[tokio::test]
async fn other_types_are_refused() {
    let site = Site::start().await;
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data"),
    ] {
        let mut request = Request::new("POST", "/v1/sessions").key(&site.admin);
        if let Some(kind) = kind {
            request = request.header("Content-Type", kind);
        }
        let answer = site.send(request.body(b"{}".to_vec())).await;
        assert_eq!(answer.error(415), "unsupported_media_type", "{kind:?}");
    }
    site.stop().await;
}

#[tokio::test]
async fn queries_that_make_no_sense_are_refused() {
    let site = Site::start().await;
    for query in ["wait=maybe", "wiat=true", "wait=true&wait=false"] {
        let answer = site.post(format!("/v1/sessions?{query}"), json!({})).await;
        assert_eq!(answer.error(400), "invalid_request", "{query}");
    }
    let long = format!("/v1/sessions?after={}", "a".repeat(17 * 1024));
    assert_eq!(site.get(&long).await.error(414), "uri_too_long");
    site.stop().await;
}

/// HS-12: a body's size is judged by what is announced, and by what comes.
#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let site = Site::start_with(|settings| {
        settings.limits.json_bytes = 1000;
        settings.limits.action_bytes = 4000;
        settings.limits.large_bodies_bytes = 4096;
    })
    .await;
    let labels = json!({ "labels": { "x": "y".repeat(1000) } });
    let announced = site.post("/v1/sessions", labels).await;
    assert_eq!(announced.error(413), "body_too_large");

    let chunk = format!("400\r\n{}\r\n", "[".repeat(1024));
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n",
        site.address, site.admin
    );
    let streamed = send_raw(site.address, head.as_bytes()).await;
    assert_eq!(Response::parse(&streamed).error(413), "body_too_large");

    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let write = |bytes: usize| {
        let content = "x".repeat(bytes);
        json!({ "action": "write", "args": { "path": "f", "content": content } })
    };
    site.post(&path, write(3000)).await.expect(200);
    let refused = site.post(&path, write(5000)).await;
    assert_eq!(refused.error(413), "body_too_large");
    site.stop().await;
}

/// HS-13.
#[tokio::test]
async fn requests_that_are_no_http_are_refused() {
    let site = Site::start().await;
    for bytes in [
        "GET /v1/health HTTP/1.1\r\n\r\n",
        "GET /v1/health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /v1/sessions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/sessions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET /v1/health HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n",
        "GET http://evil.example/v1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "\u{16}\u{3}\u{1}hello\r\n\r\n",
    ] {
        let bytes = bytes.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let answer = send_raw(site.address, bytes.as_bytes()).await;
        let text = String::from_utf8_lossy(&answer);
        let is_refused = text.starts_with("HTTP/1.1 4") || text.is_empty();
        assert!(is_refused, "{bytes:?}: {text}");
    }
    site.get("/v1/status").await.expect(200);
    site.stop().await;
}

/// HS-13: what a proxy in front may read as one request is not two here.
#[tokio::test]
async fn requests_with_two_lengths_are_refused_and_smuggle_nothing() {
    let site = Site::start().await;
    let body = r#"{"id": "seen"}"#;
    let smuggled = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        site.address,
        site.admin,
        body.len()
    );
    for lengths in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked",
            5 + smuggled.len()
        ),
        format!(
            "Transfer-Encoding: chunked\r\nContent-Length: {}",
            5 + smuggled.len()
        ),
        "Content-Length: 0\r\nContent-Length: 0".to_owned(),
    ] {
        let head = |lengths: &str| {
            format!(
                "GET /v1/health HTTP/1.1\r\nHost: {}\r\n{lengths}\r\n\r\n",
                site.address
            )
        };
        // The first one is clear and answered; behind the second, nothing is read any more.
        let bytes = format!(
            "{}{}0\r\n\r\n{smuggled}",
            head("Content-Length: 0"),
            head(&lengths)
        );
        let answer = send_raw(site.address, bytes.as_bytes()).await;
        let text = String::from_utf8_lossy(&answer);
        let statuses: Vec<&str> = text
            .split("HTTP/1.1 ")
            .filter_map(|answer| answer.get(..3))
            .collect();
        assert_eq!(statuses, ["200", "400"], "{lengths}: {text}");
        assert!(text.contains("connection: close"), "{text}");
    }
    let sessions = site.get("/v1/sessions").await.expect(200);
    assert_eq!(sessions["sessions"], json!([]));
    site.stop().await;
}

/// HS-13: behind a head whose lines others may count differently, nothing is read.
#[tokio::test]
async fn a_bare_line_feed_in_a_head_smuggles_nothing() {
    let site = Site::start().await;
    let host = site.address;
    let second = format!("GET /v1/health HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for head in [
        format!("GET /v1/health HTTP/1.1\nHost: {host}\n\n"),
        format!("GET /v1/health HTTP/1.1\r\nHost: {host}\nX: y\r\n\r\n"),
        "GET /v1/health HTTP/1.1\n\n".to_owned(),
    ] {
        let answer = send_raw(site.address, format!("{head}{second}").as_bytes()).await;
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 400"), "{head:?}: {text}");
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "{head:?}: {text}");
        assert!(text.contains("connection: close"), "{text}");
    }
    site.stop().await;
}

/// HS-12: the head says it already.
#[tokio::test]
async fn an_announced_length_over_the_limit_is_refused_before_the_body_comes() {
    let site = Site::start().await;
    let session = site.session().await;
    for path in [
        "/v1/sessions".to_owned(),
        format!("/v1/sessions/{session}/actions"),
    ] {
        for expect in ["", "Expect: 100-continue\r\n"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{expect}\
                 Content-Type: application/json\r\nContent-Length: 10000000000\r\n\r\n",
                site.address, site.admin
            );
            let mut stream = TcpStream::connect(site.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(Response::parse(&answer).error(413), "body_too_large");
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn a_get_with_a_body_is_answered() {
    let site = Site::start().await;
    for bytes in [1, 16 * 1024 * 1024] {
        let document = Request::get("/v1/openapi.json")
            .key(&site.admin)
            .body(vec![b'x'; bytes]);
        site.send(document).await.expect(200);
    }
    site.stop().await;
}

/// HS-13: what could have become something else than HTTP is not read along, and ends.
#[tokio::test]
async fn a_connection_ends_with_an_upgrade_that_was_not_made() {
    let site = Site::start().await;
    let request = |header: &str| {
        let host = site.address;
        format!("GET /v1/health HTTP/1.1\r\nHost: {host}\r\n{header}\r\n")
    };
    let bytes = request("Connection: upgrade\r\nUpgrade: h2c\r\n") + &request("");
    let answer = send_raw(site.address, bytes.as_bytes()).await;
    let text = String::from_utf8_lossy(&answer);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "{text}");
    site.stop().await;
}

/// HS-11: whoever sends slowly is closed, and others do not notice.
#[tokio::test]
async fn slow_senders_are_closed() {
    let site = Site::start_with(|settings| {
        settings.limits.header_timeout = Duration::from_millis(300);
        settings.limits.body_stall = Duration::from_millis(300);
    })
    .await;
    let mut slow = TcpStream::connect(site.address).await.unwrap();
    slow.write_all(b"GET /v1/health HTTP/1.1\r\nHo")
        .await
        .unwrap();
    let mut stalled = TcpStream::connect(site.address).await.unwrap();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        site.address, site.admin
    );
    stalled.write_all(head.as_bytes()).await.unwrap();
    site.get("/v1/status").await.expect(200);
    let started = Instant::now();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer).await;
    let mut answer = Vec::new();
    let _ = stalled.read_to_end(&mut answer).await;
    assert_eq!(Response::parse(&answer).error(408), "request_timeout");
    assert!(started.elapsed() < Duration::from_secs(10));
    site.stop().await;
}

/// HS-14: when there are too many, it is said at once; whether the server lives and the end of a
/// session still work.
#[tokio::test]
async fn under_overload_the_vital_routes_answer() {
    let site = Site::start_with(|settings| {
        settings.limits.connections = 2;
        settings.limits.header_timeout = Duration::from_secs(60);
    })
    .await;
    let session = site.session().await;
    let mut held = Vec::new();
    for _ in 0..2 {
        // Of clients that have shown their key.
        let known = Request::get("/v1/status").key(&site.admin);
        let known = known.header("Connection", "keep-alive");
        held.push(known.open(site.address).await);
    }
    let started = Instant::now();
    let refused = site.get("/v1/status").await;
    assert_eq!(refused.error(503), "overloaded");
    assert!(refused.header("retry-after").is_some());
    assert!(started.elapsed() < Duration::from_secs(1));
    // Places for these are few: whoever would keep one is closed after the answer.
    let kept = Request::get("/v1/health").header("Connection", "keep-alive");
    site.send(kept).await.expect(200);
    assert!(started.elapsed() < Duration::from_secs(5));
    let ended = site.delete(format!("/v1/sessions/{session}")).await;
    assert_eq!(ended.status, 204);
    drop(held);
    site.stop().await;
}

/// HS-14: connections of strangers, who need no key for them, keep nothing from anybody.
#[tokio::test]
async fn idle_connections_without_a_key_take_no_place_from_clients() {
    let site = Site::start_with(|settings| {
        settings.limits.connections = 64;
    })
    .await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/stream");
    let (head, stream) = Request::get(&path)
        .key(&site.admin)
        .open(site.address)
        .await;
    assert_eq!(head.status, 200);
    let mut idle = Vec::new();
    for _ in 0..64 + 2 * LIVENESS_RESERVE {
        idle.push(TcpStream::connect(site.address).await.unwrap());
    }
    site.send(Request::get("/v1/health")).await.expect(200);
    site.get("/v1/status").await.expect(200);
    let metrics = site.get("/metrics").await.text();
    assert!(
        metrics.contains("zareba_streams{kind=\"sse\"} 1"),
        "{metrics}"
    );
    let ended = site.delete(format!("/v1/sessions/{session}")).await;
    assert_eq!(ended.status, 204);
    drop((idle, stream));
    site.stop().await;
}

/// HS-15: a client that reads nothing is cut off, and nobody waits for it.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let site = Site::start_with(|settings| {
        settings.limits.write_stall = Duration::from_millis(300);
    })
    .await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/stream");
    let (head, mut unread) = Request::get(&path)
        .key(&site.admin)
        .open(site.address)
        .await;
    assert_eq!(head.status, 200);
    // More than the buffers of both ends hold.
    let content = "x".repeat(240 * 1024);
    let write = json!({ "action": "write", "args": { "path": "f", "content": content } });
    for _ in 0..60 {
        let path = format!("/v1/sessions/{session}/actions");
        site.post(path, write.clone()).await.expect(200);
    }
    let metrics = || async { site.get("/metrics").await.text() };
    let is_open = |text: &str| text.contains("zareba_streams{kind=\"sse\"} 1");
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_open(&metrics().await) {
        assert!(Instant::now() < deadline, "the stream is still open");
    }
    let mut rest = Vec::new();
    let _ = unread.read_to_end(&mut rest).await;
    site.stop().await;
}

/// HS-20: one request's panic is its own affair.
#[tokio::test]
async fn a_panic_is_answered_and_everything_goes_on() {
    use axum::{Router, routing::get};
    async fn fail() -> &'static str {
        panic!("on purpose")
    }
    let routes = Router::new().route("/fail", get(fail));
    let extension = zareba_server::Extension::new("fail").with(zareba_api::Access::Read, routes);
    let site = Site::start_extended(|_| {}, Some(extension)).await;
    let answer = site.get("/fail").await;
    assert_eq!(answer.error(500), "internal");
    assert!(!answer.text().contains("on purpose"));
    site.get("/v1/status").await.expect(200);
    site.stop().await;
}
