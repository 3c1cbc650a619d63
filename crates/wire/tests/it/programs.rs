//! Programs with streams of their own: who may start them, what is refused, and what happens to
//! those whose client does not read, does not stop or does not stay.

use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use zareba_protocol::ErrorClass;
use zareba_wire::{
    Endpoint, SessionKey,
    client::{ClientError, ExecutorClient},
    program::{
        ClientFrame, FRAME_BYTES_MAX, FrameReader, ProgramEvent, ProgramExit, ProgramLine,
        ProgramRequest, ProgramSignal, ProgramStdin, STDIN_WINDOW_BYTES, ServerFrame, StartFailure,
        TerminalSize,
    },
};

use crate::{
    fake::{Running, keyed, keyless, start, start_at},
    http::{Wire, connect, parse, post},
};

const KEY: &str = "testkey";
const PATIENCE: Duration = Duration::from_secs(20);

fn client(endpoint: &Endpoint) -> ExecutorClient {
    ExecutorClient::new(endpoint.clone(), SessionKey::new(KEY).ok())
}

fn program(name: &str) -> ProgramRequest {
    ProgramRequest {
        stdin: ProgramStdin::Open,
        ..ProgramRequest::new(ProgramLine::Argv(vec![name.to_owned()]))
    }
}

/// The head and body of a request for a program.
fn upgrade(headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST /programs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         {headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: zareba-program\r\n";

/// A program that was started byte by byte: its connection, behind the head of the answer.
async fn started_by_hand(endpoint: &Endpoint, name: &str) -> Box<dyn Wire> {
    let mut wire = connect(endpoint).await;
    let headers = format!("{UPGRADE}X-Session-API-Key: {KEY}\r\n");
    let body = json!({ "argv": [name], "stdin": true });
    wire.write_all(&upgrade(&headers, &body)).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(wire.read_u8().await.unwrap());
    }
    let head = parse(&head);
    assert_eq!(head.status, 101);
    assert_eq!(head.header("upgrade"), Some("zareba-program"));
    wire
}

async fn is_unwanted(server: &Running) {
    let unwanted = timeout(PATIENCE, server.service.unwanted.acquire()).await;
    unwanted.expect("the program goes on").unwrap().forget();
}

#[tokio::test]
async fn a_program_is_carried_both_ways_over_tcp_and_over_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    for server in [
        start(keyed(KEY)),
        start_at(&Endpoint::Unix(path), keyed(KEY)),
    ] {
        let mut request = program("echo");
        request.terminal = TerminalSize::new(24, 80);
        request.directory = Some("/tmp".to_owned());
        request.environment = vec![("A".to_owned(), "1".to_owned())];
        let connection = client(&server.endpoint)
            .start_program(&request)
            .await
            .unwrap();
        assert_eq!(*server.service.programs.lock().unwrap(), [request]);
        let (input, mut events) = connection.split();
        input
            .resize(TerminalSize::new(5, 6).unwrap())
            .await
            .unwrap();
        let resized = ProgramEvent::Stderr("Resize(TerminalSize { rows: 5, columns: 6 })".into());
        assert_eq!(events.next().await, Some(resized));
        input.signal(ProgramSignal::Usr1).await.unwrap();
        let signalled = ProgramEvent::Stderr("Signal(Usr1)".into());
        assert_eq!(events.next().await, Some(signalled));
        input.write_stdin("hällo".into()).await.unwrap();
        assert_eq!(
            events.next().await,
            Some(ProgramEvent::Stdout("hällo".into()))
        );
        input.close_stdin().await.unwrap();
        assert_eq!(
            events.next().await,
            Some(ProgramEvent::Exit(ProgramExit::Code(7)))
        );
        assert_eq!(events.next().await, None);
        server.stop().await;
    }
}

#[tokio::test]
async fn much_input_comes_back_whole_through_the_window() {
    let server = start(keyed(KEY));
    let connection = client(&server.endpoint)
        .start_program(&program("echo"))
        .await
        .unwrap();
    let (input, mut events) = connection.split();
    let sent: Vec<u8> = (0..5 * STDIN_WINDOW_BYTES + 7)
        .map(|at| (at % 251) as u8)
        .collect();
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        input.write_stdin(copy.into()).await.unwrap();
        input.close_stdin().await.unwrap();
    });
    let mut received = Vec::new();
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap() {
            Some(ProgramEvent::Stdout(bytes)) => received.extend_from_slice(&bytes),
            other => {
                assert_eq!(other, Some(ProgramEvent::Exit(ProgramExit::Code(7))));
                break;
            }
        }
    }
    writing.await.unwrap();
    assert!(
        received == sent,
        "{} of {} bytes",
        received.len(),
        sent.len()
    );
}

#[tokio::test]
async fn without_an_upgrade_nothing_is_started() {
    let server = start(keyed(KEY));
    let body = json!({ "argv": ["echo"] });
    let plain = post("/programs")
        .key(KEY)
        .json(&body)
        .of(&server.endpoint)
        .await;
    assert_eq!(plain.status, 426);
    assert_eq!(plain.header("upgrade"), Some("zareba-program"));
    assert!(
        plain.json()["detail"]
            .as_str()
            .unwrap()
            .contains("Upgrade: zareba-program")
    );
    let key = format!("X-Session-API-Key: {KEY}\r\n");
    for headers in [
        "Connection: Upgrade, close\r\nUpgrade: websocket\r\n",
        "Connection: close\r\nUpgrade: zareba-program\r\n",
    ] {
        let mut wire = connect(&server.endpoint).await;
        wire.write_all(&upgrade(&format!("{headers}{key}"), &body))
            .await
            .unwrap();
        wire.shutdown().await.unwrap();
        let mut received = Vec::new();
        wire.read_to_end(&mut received).await.unwrap();
        assert_eq!(parse(&received).status, 426, "{headers}");
    }
    assert!(server.service.programs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_key_and_the_origin_are_asked_for_before_the_upgrade_hs_6() {
    let server = start(keyed(KEY));
    let body = json!({ "argv": ["echo"] });
    let keyless_server = start(keyless());
    for (endpoint, headers) in [
        (&server.endpoint, "X-Session-API-Key: wrong\r\n"),
        (&server.endpoint, ""),
        (&keyless_server.endpoint, "Origin: http://evil.example\r\n"),
        (&keyless_server.endpoint, "Origin: null\r\n"),
    ] {
        let headers = format!("Connection: upgrade, close\r\nUpgrade: zareba-program\r\n{headers}");
        let mut wire = connect(endpoint).await;
        wire.write_all(&upgrade(&headers, &body)).await.unwrap();
        let mut received = Vec::new();
        wire.read_to_end(&mut received).await.unwrap();
        assert_eq!(parse(&received).status, 403, "{headers}");
    }
    for server in [&server, &keyless_server] {
        assert!(server.service.programs.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_refused_with_its_reason() {
    let server = start(keyed(KEY));
    for (name, reason, class) in [
        ("nothing", StartFailure::NotFound, ErrorClass::NotFound),
        ("busy", StartFailure::Busy, ErrorClass::Busy),
        ("", StartFailure::Invalid, ErrorClass::Invalid),
    ] {
        let error = client(&server.endpoint)
            .start_program(&program(name))
            .await
            .unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(!error.may_have_run());
        let ClientError::Program(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.reason, reason);
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_or_are_too_large_are_refused() {
    let server = start(keyed(KEY));
    let long = "x".repeat(1024 * 1024);
    for (body, status) in [
        (json!({}), 422),
        (json!({ "argv": "echo" }), 422),
        (
            json!({ "argv": ["echo"], "terminal": { "rows": 0, "cols": 0 } }),
            422,
        ),
        (json!({ "argv": ["echo", long] }), 400),
        (json!({ "argv": ["echo", "\u{0}"] }), 400),
        (json!({ "argv": [] }), 400),
        (json!({ "argv": ["busy"] }), 503),
        (json!({ "argv": ["nothing"] }), 404),
    ] {
        let mut wire = connect(&server.endpoint).await;
        let headers = format!(
            "Connection: upgrade, close\r\nUpgrade: zareba-program\r\nX-Session-API-Key: {KEY}\r\n"
        );
        wire.write_all(&upgrade(&headers, &body)).await.unwrap();
        let mut received = Vec::new();
        wire.read_to_end(&mut received).await.unwrap();
        let answer = parse(&received);
        assert_eq!(answer.status, status, "{}", answer.json());
        assert!(answer.json()["detail"].is_string());
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_program() {
    let server = start(keyed(KEY));
    for name in ["echo", "deaf", "flood"] {
        let client = client(&server.endpoint);
        drop(client.start_program(&program(name)).await.unwrap());
        is_unwanted(&server).await;
        drop(started_by_hand(&server.endpoint, name).await);
        is_unwanted(&server).await;
    }
}

#[tokio::test]
async fn input_that_nobody_reads_hides_neither_signals_nor_the_end_of_the_client() {
    let server = start(keyed(KEY));
    for ending in ["signal", "gone"] {
        let connection = client(&server.endpoint)
            .start_program(&program("deaf"))
            .await
            .unwrap();
        let (input, mut events) = connection.split();
        let typing = input.clone();
        let mut writing = tokio::spawn(async move {
            let endless = vec![0; 2 * STDIN_WINDOW_BYTES];
            while typing.write_stdin(endless.clone().into()).await.is_ok() {}
        });
        // Far more than any buffer on the way holds: it does not get through.
        let stuck = timeout(Duration::from_millis(300), &mut writing).await;
        assert!(stuck.is_err());
        if ending == "signal" {
            input.signal(ProgramSignal::Term).await.unwrap();
            let event = timeout(PATIENCE, events.next()).await.unwrap();
            assert_eq!(event, Some(ProgramEvent::Exit(ProgramExit::Signal(15))));
        } else {
            drop(events);
            is_unwanted(&server).await;
        }
        timeout(PATIENCE, writing).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_oversteps_the_window_or_the_frame_is_cut_off_g_5() {
    let server = start(keyed(KEY));
    let mut too_much = BytesMut::new();
    let piece = vec![0; FRAME_BYTES_MAX];
    for _ in 0..=STDIN_WINDOW_BYTES / FRAME_BYTES_MAX + 5 {
        ClientFrame::Stdin(piece.clone().into()).encode(&mut too_much);
    }
    let too_long = BytesMut::from(&[0, 0xff, 0xff, 0xff, 0xff][..]);
    let unknown = BytesMut::from(&[9, 0, 0, 0, 0][..]);
    for bytes in [too_much, too_long, unknown] {
        let mut wire = started_by_hand(&server.endpoint, "deaf").await;
        // It may be cut off before all is sent.
        let _ = wire.write_all(&bytes).await;
        is_unwanted(&server).await;
    }
}

#[tokio::test]
async fn programs_end_when_the_server_does() {
    let server = start(keyed(KEY));
    let connection = client(&server.endpoint)
        .start_program(&program("deaf"))
        .await
        .unwrap();
    let (_input, mut events) = connection.split();
    let service = server.service.clone();
    timeout(Duration::from_secs(5), server.stop())
        .await
        .expect("the server waits for its programs");
    let unwanted = timeout(PATIENCE, service.unwanted.acquire()).await;
    assert!(unwanted.is_ok(), "the program goes on");
    let event = timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(event, Some(ProgramEvent::Error(_))), "{event:?}");
}

/// A server that says yes to a program and then sends these bytes.
async fn liar(bytes: Vec<u8>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: zareba-program\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // The client may have heard enough.
        let _ = stream.write_all(&bytes).await;
    });
    endpoint
}

#[tokio::test]
async fn an_executor_that_lies_is_an_error_and_nothing_worse_g_1() {
    let mut half = BytesMut::new();
    ServerFrame::Stdout("x".into()).encode(&mut half);
    half.truncate(3);
    for bytes in [
        vec![],
        half.to_vec(),
        vec![7, 0, 0, 0, 0],
        vec![2, 0, 0, 0, 2, b'{', b'}'],
        vec![0, 0xff, 0, 0, 0],
        vec![4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff],
        vec![0x55; 200_000],
    ] {
        let connection = client(&liar(bytes).await)
            .start_program(&program("echo"))
            .await
            .unwrap();
        let (_input, mut events) = connection.split();
        let event = timeout(PATIENCE, events.next()).await.unwrap();
        assert!(matches!(event, Some(ProgramEvent::Error(_))), "{event:?}");
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn output_that_is_not_read_waits_and_is_then_read_to_its_end() {
    let server = start(keyed(KEY));
    let mut wire = started_by_hand(&server.endpoint, "flood").await;
    let mut frames = FrameReader::default();
    for _ in 0..200 {
        let frame = timeout(PATIENCE, frames.read(&mut wire)).await.unwrap();
        let (kind, content) = frame.unwrap().unwrap();
        assert_eq!((kind, content.len()), (0, FRAME_BYTES_MAX));
    }
    drop(wire);
    is_unwanted(&server).await;
}
