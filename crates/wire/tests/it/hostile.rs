//! Clients that send too much, too little, too slowly, or nonsense. Afterwards the server is
//! always asked whether it lives.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use zareba_wire::{
    Endpoint,
    server::{LIVENESS_RESERVE, ServerLimits, ServerOptions},
};

use crate::{
    fake::{keyed, start},
    http::{Wire, connect, get, parse, post},
};

const KEY: &str = "testkey";
/// Far more than any of these tests needs; it ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn limited(limits: ServerLimits) -> ServerOptions {
    ServerOptions {
        limits,
        ..keyed(KEY)
    }
}

async fn assert_alive(endpoint: &Endpoint) {
    assert_eq!(get("/alive").of(endpoint).await.status, 200);
}

async fn everything_from(wire: &mut Box<dyn Wire>) -> Vec<u8> {
    let mut received = Vec::new();
    let end = timeout(PATIENCE, wire.read_to_end(&mut received)).await;
    // A reset is as good an end as any.
    drop(end.expect("the server must close the connection"));
    received
}

#[tokio::test]
async fn garbage_is_answered_with_400_and_closed() {
    let server = start(keyed(KEY));
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET /alive HTTP/9.9\r\n\r\n",
        b"GET /alive HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /alive HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"POST /list_files HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /list_files HTTP/1.1\r\nContent-Length: -2\r\n\r\n{}",
        b"POST /list_files HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"GET /alive HTTP/1.1\nHost: a\n\nGET /alive HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /alive HTTP/1.1\r\nHost: a\nX: y\r\n\r\nGET /alive HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut wire = connect(&server.endpoint).await;
        wire.write_all(garbage).await.unwrap();
        let answers = everything_from(&mut wire).await;
        let answer = parse(&answers);
        assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(garbage));
        let text = String::from_utf8_lossy(&answers);
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
    }
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn bad_chunks_in_a_body_are_refused() {
    let server = start(keyed(KEY));
    let mut wire = connect(&server.endpoint).await;
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nxyz\r\n{{}}\r\n0\r\n\r\n"
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(parse(&everything_from(&mut wire).await).status, 400);
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn headers_that_never_end_are_cut_off_by_the_clock() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(300),
        ..Default::default()
    };
    let server = start(limited(limits));
    let mut slow = connect(&server.endpoint).await;
    slow.write_all(b"GET /alive HTTP/1.1\r\nHost: loc")
        .await
        .unwrap();
    let mut silent = connect(&server.endpoint).await;
    let slow_answer = everything_from(&mut slow).await;
    let silent_answer = everything_from(&mut silent).await;
    let shown = String::from_utf8_lossy(&slow_answer);
    assert!(
        slow_answer.is_empty() || shown.starts_with("HTTP/1.1 408"),
        "{shown}"
    );
    assert_eq!(silent_answer, b"");
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_request() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(300),
        ..Default::default()
    };
    let server = start(limited(limits));
    let mut wire = connect(&server.endpoint).await;
    wire.write_all(b"GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(parse(&everything_from(&mut wire).await).status, 200);
}

#[tokio::test]
async fn a_body_that_stops_arriving_is_given_up() {
    let limits = ServerLimits {
        body_stall: Duration::from_millis(300),
        ..Default::default()
    };
    let server = start(limited(limits));
    let mut wire = connect(&server.endpoint).await;
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\nContent-Length: 9\r\n\r\n{{"
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    let answer = parse(&everything_from(&mut wire).await);
    let expected = json!({"detail": "the body arrives too slowly"});
    assert_eq!((answer.status, answer.json()), (408, expected));
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_although_it_never_stops() {
    let limits = ServerLimits {
        body_stall: Duration::from_millis(500),
        ..Default::default()
    };
    let server = start(limited(limits));
    let stream = match &server.endpoint {
        Endpoint::Tcp(address) => tokio::net::TcpStream::connect(address).await.unwrap(),
        Endpoint::Unix(_) => panic!("a TCP server was started"),
    };
    let (mut reading, mut writing) = stream.into_split();
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\nContent-Length: 900\r\n\r\n"
    );
    writing.write_all(head.as_bytes()).await.unwrap();
    let dripping = tokio::spawn(async move {
        let mut drops = tokio::time::interval(Duration::from_millis(50));
        while writing.write_all(b" ").await.is_ok() {
            drops.tick().await;
        }
    });
    let mut received = Vec::new();
    // A reset after the answer is no matter.
    drop(
        timeout(PATIENCE, reading.read_to_end(&mut received))
            .await
            .unwrap(),
    );
    assert_eq!(parse(&received).status, 408);
    dripping.abort();
}

#[tokio::test]
async fn a_json_body_may_reach_the_limit_and_not_pass_it() {
    let server = start(limited(ServerLimits {
        json_bytes: 1000,
        ..Default::default()
    }));
    let padded = |size: usize| format!("{{{:>width$}", "}", width = size - 1).into_bytes();
    let at = post("/list_files")
        .key(KEY)
        .body("application/json", &padded(1000));
    assert_eq!(at.of(&server.endpoint).await.status, 200);
    let past = post("/list_files")
        .key(KEY)
        .body("application/json", &padded(1001));
    let answer = past.of(&server.endpoint).await;
    let expected = json!({"detail": "the JSON body is larger than the limit of 1000 bytes"});
    assert_eq!((answer.status, answer.json()), (413, expected.clone()));

    // The same without an announced length, and with more on its way than sockets hold.
    let mut wire = connect(&server.endpoint).await;
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    let chunk = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..128 {
        wire.write_all(&chunk).await.unwrap();
    }
    wire.write_all(b"0\r\n\r\n").await.unwrap();
    let answer = parse(&everything_from(&mut wire).await);
    assert_eq!((answer.status, answer.json()), (413, expected));
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn a_client_that_asks_first_is_told_no_before_it_sends() {
    let server = start(limited(ServerLimits {
        json_bytes: 1000,
        ..Default::default()
    }));
    let mut wire = connect(&server.endpoint).await;
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\n\
         Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(parse(&everything_from(&mut wire).await).status, 413);
}

/// HS-12: the head says it already, and no byte of the body is waited for.
#[tokio::test]
async fn an_announced_length_over_the_limit_is_refused_before_the_body_comes() {
    let server = start(keyed(KEY));
    let mut wire = connect(&server.endpoint).await;
    let head = format!(
        "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\n\
         Content-Length: 10000000000\r\n\r\n"
    );
    wire.write_all(head.as_bytes()).await.unwrap();
    let answer = parse(&everything_from(&mut wire).await);
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
    assert_alive(&server.endpoint).await;
}

/// A body that no handler reads is more than the sockets hold, and its sender sees no reset.
#[tokio::test]
async fn a_get_with_a_body_is_answered_and_its_connection_ends_cleanly() {
    let server = start(keyed(KEY));
    let Endpoint::Tcp(address) = &server.endpoint else {
        panic!("a TCP server was started");
    };
    for length in [1, 16 * 1024 * 1024] {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        let head =
            format!("GET /alive HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        let sent = tokio::spawn(async move {
            writing.write_all(head.as_bytes()).await?;
            writing.write_all(&vec![b'x'; length]).await?;
            writing.shutdown().await
        });
        let mut received = Vec::new();
        let ended = timeout(PATIENCE, reading.read_to_end(&mut received)).await;
        ended.unwrap().unwrap();
        sent.await.unwrap().unwrap();
        assert_eq!(parse(&received).status, 200, "{length}");
    }
}

#[tokio::test]
async fn long_targets_and_headers_are_refused() {
    let server = start(keyed(KEY));
    let long = get(&format!("/alive?{}", "x".repeat(20_000)))
        .of(&server.endpoint)
        .await;
    let expected = json!({"detail": "the URI is longer than the limit of 16384 bytes"});
    assert_eq!((long.status, long.json()), (414, expected));
    let heavy = get("/alive")
        .header("X-Big", &"x".repeat(40_000))
        .of(&server.endpoint)
        .await;
    assert_eq!(heavy.status, 431);
    let many = (0..200).fold(get("/alive"), |ask, n| ask.header(&format!("X-{n}"), "x"));
    assert_eq!(many.of(&server.endpoint).await.status, 431);
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn under_overload_liveness_answers_and_nothing_else() {
    let server = start(limited(ServerLimits {
        connections: 2,
        ..Default::default()
    }));
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(recognised(&server.endpoint).await);
    }
    assert_alive(&server.endpoint).await;
    let answer = post("/list_files")
        .key(KEY)
        .json(&json!({}))
        .of(&server.endpoint)
        .await;
    let expected = json!({"detail": "too many connections, try again later"});
    assert_eq!((answer.status, answer.json()), (503, expected));
    assert_eq!(answer.header("retry-after"), Some("1"));

    // Strangers cannot take that from others: the oldest of them gives way.
    let mut oldest = connect(&server.endpoint).await;
    let mut idle = Vec::new();
    for _ in 0..LIVENESS_RESERVE {
        idle.push(connect(&server.endpoint).await);
    }
    assert_eq!(everything_from(&mut oldest).await, b"");
    assert_alive(&server.endpoint).await;
    server.stop().await;
}

#[tokio::test]
async fn one_peer_cannot_take_every_connection() {
    let limits = ServerLimits {
        peer_connections: 1,
        ..Default::default()
    };
    let server = start(limited(limits));
    let held = recognised(&server.endpoint).await;
    let answer = post("/list_files")
        .key(KEY)
        .json(&json!({}))
        .of(&server.endpoint)
        .await;
    assert_eq!(answer.status, 503);
    drop(held);
}

/// HS-14: a stranger's silence costs no client its answer.
#[tokio::test]
async fn idle_strangers_give_way_to_clients_who_ask_for_something() {
    let server = start(limited(ServerLimits {
        connections: 4,
        peer_connections: 3,
        ..Default::default()
    }));
    let known = recognised(&server.endpoint).await;
    let mut idle = Vec::new();
    for _ in 0..2 * LIVENESS_RESERVE {
        let mut wire = connect(&server.endpoint).await;
        // Whether a stranger says nothing, half of something or asks what is public is all one.
        wire.write_all(b"GET /alive HTTP/1.1\r\nHost: l")
            .await
            .unwrap();
        idle.push(wire);
    }
    let list = post("/list_files").key(KEY).json(&json!({}));
    assert_eq!(list.of(&server.endpoint).await.status, 200);
    assert_alive(&server.endpoint).await;
    // The connection that was recognised is still there.
    assert_eq!(ask_again(known).await, 200);
}

const LIST: &str = "POST /list_files HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: testkey\r\n\
                    Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// An idle connection on which a request with the key was answered.
async fn recognised(endpoint: &Endpoint) -> Box<dyn Wire> {
    let mut wire = connect(endpoint).await;
    wire.write_all(LIST.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut wire).await, 200);
    wire
}

async fn ask_again(mut wire: Box<dyn Wire>) -> u16 {
    wire.write_all(LIST.as_bytes()).await.unwrap();
    read_answer(&mut wire).await
}

/// Reads an answer whole and returns its status.
async fn read_answer(wire: &mut Box<dyn Wire>) -> u16 {
    let mut received = Vec::new();
    loop {
        let read = timeout(PATIENCE, wire.read_buf(&mut received)).await;
        assert_ne!(read.unwrap().unwrap(), 0, "the connection was closed");
        let text = String::from_utf8_lossy(&received).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() >= length {
            return parse(&received).status;
        }
    }
}

#[tokio::test]
async fn a_panic_in_the_service_is_one_clients_500() {
    let server = start(keyed(KEY));
    let panic = json!({"action": {"action": "run", "args": {"command": "panic"}}});
    let expected = json!({"detail": "An unexpected error occurred. Please try again later."});
    for _ in 0..3 {
        let ask = post("/execute_action").key(KEY).json(&panic);
        let answer = ask.of(&server.endpoint).await;
        assert_eq!((answer.status, answer.json()), (500, expected.clone()));
    }
    assert_alive(&server.endpoint).await;
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let limits = ServerLimits {
        connections: 1,
        write_stall: Duration::from_millis(300),
        ..Default::default()
    };
    let server = start(limited(limits));
    let mut deaf = connect(&server.endpoint).await;
    let command = "x".repeat(20_000_000);
    let action = json!({"action": {"action": "run", "args": {"command": command}}});
    let ask = post("/execute_action").key(KEY).json(&action);
    deaf.write_all(&ask.bytes()).await.unwrap();
    // Its place is free again once the server has given up.
    let freed = async {
        while post("/list_files")
            .key(KEY)
            .json(&json!({}))
            .of(&server.endpoint)
            .await
            .status
            != 200
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, freed)
        .await
        .expect("the place must become free");
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_never_a_complete_file() {
    let server = start(keyed(KEY));
    let mut wire = connect(&server.endpoint).await;
    let ask = post("/upload_file?destination=/up")
        .key(KEY)
        .file("f", &[b'x'; 100_000])
        .bytes();
    wire.write_all(&ask[..ask.len() / 2]).await.unwrap();
    drop(wire);
    // Either the service is told, or its future is dropped; never is half a file complete.
    let over = timeout(PATIENCE, server.service.uploads_over.acquire()).await;
    over.expect("the upload must end").unwrap().forget();
    let uploads = server.service.uploads.lock().unwrap();
    assert!(
        uploads.iter().all(|(_, outcome)| outcome.is_err()),
        "{uploads:?}"
    );
    assert!(!server.service.root.path().join("up/f").exists());
}
