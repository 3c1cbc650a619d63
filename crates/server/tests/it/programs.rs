//! Programs of a session, and connections to its ports, on connections that are taken over.

use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use zareba_wire::program::{
    ClientFrame, FRAME_BYTES_MAX, FrameReader, ProgramExit, ProgramSignal, STDIN_WINDOW_BYTES,
    ServerFrame, TerminalSize,
};

use crate::{fixture::Site, http::Request};

const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that goes on as something else; what came behind the answer is kept.
struct Raw {
    stream: TcpStream,
    rest: Vec<u8>,
}

/// Sends a request for an upgrade; an answer that is none fails the test.
async fn upgrade(site: &Site, key: &str, head: &str, name: &str, body: &str) -> Raw {
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: {}\r\nx-api-key: {key}\r\nconnection: upgrade\r\n\
         upgrade: {name}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        site.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let end = loop {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        let read = timeout(PATIENCE, stream.read_buf(&mut answer)).await;
        assert!(read.unwrap().unwrap() > 0, "the connection ended");
    };
    let rest = answer.split_off(end);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    Raw { stream, rest }
}

/// A client's end of a program.
struct Program {
    stream: TcpStream,
    frames: FrameReader,
}

/// What came from a program, up to its end.
#[derive(Debug, Default)]
struct Seen {
    stdout: String,
    stderr: String,
    taken: usize,
    end: Option<ServerFrame>,
}

impl Program {
    async fn start(site: &Site, session: &str, program: Value) -> Self {
        Self::start_with(site, &site.admin, session, program).await
    }

    async fn start_with(site: &Site, key: &str, session: &str, program: Value) -> Self {
        let head = format!("POST /v1/sessions/{session}/programs");
        let raw = upgrade(site, key, &head, "zareba-program", &program.to_string()).await;
        Self {
            stream: raw.stream,
            frames: FrameReader::starting_with(&raw.rest),
        }
    }

    async fn say(&mut self, frame: ClientFrame) {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// `None` when the server has ended the connection.
    async fn next(&mut self) -> Option<ServerFrame> {
        let read = timeout(PATIENCE, self.frames.read(&mut self.stream)).await;
        let (kind, content) = read.unwrap().ok().flatten()?;
        Some(ServerFrame::decode(kind, content).unwrap())
    }

    async fn until_shown(&mut self, text: &str) {
        let mut shown = String::new();
        while !shown.contains(text) {
            match self.next().await {
                Some(ServerFrame::Stdout(bytes)) => shown += &String::from_utf8_lossy(&bytes),
                other => panic!("{other:?} after {shown:?}"),
            }
        }
    }

    async fn whole(mut self) -> Seen {
        let mut seen = Seen::default();
        while let Some(frame) = self.next().await {
            match frame {
                ServerFrame::Stdout(bytes) => seen.stdout += &String::from_utf8_lossy(&bytes),
                ServerFrame::Stderr(bytes) => seen.stderr += &String::from_utf8_lossy(&bytes),
                ServerFrame::Taken(bytes) => seen.taken += usize::try_from(bytes).unwrap(),
                end => seen.end = Some(end),
            }
        }
        seen
    }
}

fn exit(code: i32) -> Option<ServerFrame> {
    Some(ServerFrame::Exit(ProgramExit::Code(code)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_streams_of_its_own_and_an_end() {
    let site = Site::start().await;
    let session = site.session().await;
    let program = json!({
        "argv": ["sh", "-c", "read line; echo \"$line $A\"; echo wrong >&2; exit 3"],
        "env": { "A": "b" },
        "stdin": true,
    });
    let mut program = Program::start(&site, &session, program).await;
    program.say(ClientFrame::Stdin("typed\n".into())).await;
    let seen = program.whole().await;
    assert_eq!(
        (seen.stdout.as_str(), seen.stderr.as_str()),
        ("typed b\n", "wrong\n")
    );
    assert_eq!((seen.taken, seen.end), (6, exit(3)));

    let program = json!({ "command": "stty size; read x", "stdin": true,
        "terminal": { "rows": 40, "cols": 132 } });
    let mut program = Program::start(&site, &session, program).await;
    program.until_shown("40 132").await;
    let size = TerminalSize::new(50, 100).unwrap();
    program.say(ClientFrame::Resize(size)).await;
    program.say(ClientFrame::Signal(ProgramSignal::Kill)).await;
    let end = program.whole().await.end;
    assert_eq!(end, Some(ServerFrame::Exit(ProgramExit::Signal(9))));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_is_taken_at_the_programs_pace_and_ends_where_it_is_told() {
    let site = Site::start().await;
    let session = site.session().await;
    let program = json!({ "argv": ["wc", "-c"], "stdin": true });
    let mut program = Program::start(&site, &session, program).await;
    let piece = vec![7; FRAME_BYTES_MAX];
    let mut window = STDIN_WINDOW_BYTES;
    for _ in 0..32 {
        while window < piece.len() {
            match program.next().await {
                Some(ServerFrame::Taken(bytes)) => window += usize::try_from(bytes).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        window -= piece.len();
        program.say(ClientFrame::Stdin(piece.clone().into())).await;
    }
    program.say(ClientFrame::EndOfStdin).await;
    let seen = program.whole().await;
    assert_eq!(seen.stdout.trim(), (32 * FRAME_BYTES_MAX).to_string());
    assert_eq!(seen.end, exit(0));
    site.stop().await;
}

/// G-1: a client that is further ahead than it may be is not listened to any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_keeps_no_rules_is_disconnected() {
    let site = Site::start().await;
    let session = site.session().await;
    let nonsense: [Vec<u8>; 2] = [vec![9, 0, 0, 0, 0], vec![0, 255, 255, 255, 255]];
    for bytes in nonsense {
        let program = json!({ "argv": ["sleep", "1000"], "stdin": true });
        let mut program = Program::start(&site, &session, program).await;
        program.stream.write_all(&bytes).await.unwrap();
        assert_eq!(program.next().await, None);
    }
    let program = json!({ "argv": ["sleep", "1000"], "stdin": true });
    let mut program = Program::start(&site, &session, program).await;
    let piece = vec![7; FRAME_BYTES_MAX];
    let mut bytes = BytesMut::new();
    for _ in 0..32 {
        ClientFrame::Stdin(piece.clone().into()).encode(&mut bytes);
    }
    // It may be cut off while it still sends.
    let _ = program.stream.write_all(&bytes).await;
    while let Some(frame) = program.next().await {
        assert!(matches!(frame, ServerFrame::Taken(_)), "{frame:?}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_its_client() {
    let site = Site::start().await;
    let session = site.session().await;
    site.run(&session, "mkfifo gone").await;
    let text = "trap 'echo yes > gone; exit' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut program = Program::start(&site, &session, json!({ "command": text })).await;
    program.until_shown("ready").await;
    drop(program);
    let told = timeout(PATIENCE, site.run(&session, "cat gone")).await;
    assert_eq!(told.unwrap()["content"], "yes");
    site.stop().await;
}

/// HS-8: whoever was let in may be let in no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_the_key_that_started_it() {
    let site =
        Site::start_with(|settings| settings.limits.ping_interval = Duration::from_millis(50))
            .await;
    let session = site.session().await;
    let key = json!({ "owner": "admin", "scope": "session" });
    let created = site.post("/v1/keys", key).await.expect(201);
    let secret = created["secret"].as_str().unwrap();
    let program = json!({ "command": "echo ready; sleep 1000" });
    let mut program = Program::start_with(&site, secret, &session, program).await;
    program.until_shown("ready").await;
    let id = created["key"]["id"].as_str().unwrap();
    site.delete(format!("/v1/keys/{id}")).await.expect(204);
    assert_eq!(program.next().await, None);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_the_session_are_hidden_in_what_a_program_says() {
    let site = Site::start().await;
    let body = json!({ "secrets": { "TOKEN": "swordfish-123" } });
    let session = site.post("/v1/sessions", body).await.expect(201);
    let session = session["id"].as_str().unwrap();
    let text = "echo swordfish-123; echo swordfish-123 >&2";
    let seen = Program::start(&site, session, json!({ "command": text }))
        .await
        .whole()
        .await;
    assert_eq!(seen.stdout, "<secret_hidden>\n");
    assert_eq!(seen.stderr, "<secret_hidden>\n");
    site.stop().await;
}

/// HS-9: what is somebody else's does not exist, and who may only read starts nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_started_is_refused_before_the_connection_is_taken() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/programs");
    let asked = |key: &str, body: Value| {
        Request::post(&path, &body)
            .key(key)
            .header("connection", "close, upgrade")
            .header("upgrade", "zareba-program")
    };
    for (body, status, code) in [
        (
            json!({ "argv": ["no-such-program"] }),
            404,
            "program_not_found",
        ),
        (
            json!({ "argv": ["/etc/passwd"] }),
            403,
            "program_not_executable",
        ),
        (
            json!({ "argv": ["ls"], "cwd": "/no/such" }),
            422,
            "bad_directory",
        ),
        (json!({}), 400, "invalid_request"),
        (
            json!({ "argv": ["ls"], "command": "ls" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "argv": ["ls"], "terminal": { "rows": 0, "cols": 1 } }),
            400,
            "invalid_request",
        ),
        (
            json!({ "argv": ["ls"], "tty": true }),
            400,
            "invalid_request",
        ),
    ] {
        let answer = site.send(asked(&site.admin, body.clone())).await;
        assert_eq!(answer.error(status), code, "{body}");
    }
    let plain = site.post(&path, json!({ "argv": ["ls"] })).await;
    assert_eq!(plain.error(400), "invalid_request");
    let reader = site.key(json!({ "owner": "admin", "scope": "read" })).await;
    let refused = site.send(asked(&reader, json!({ "argv": ["ls"] }))).await;
    assert_eq!(refused.error(403), "forbidden");
    let stranger = json!({ "owner": "other", "scope": "session" });
    let stranger = site.key(stranger).await;
    let refused = site.send(asked(&stranger, json!({ "argv": ["ls"] }))).await;
    assert_eq!(refused.error(404), "not_found");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_is_connected_to_byte_by_byte() {
    let site = Site::start().await;
    let session = site.session().await;
    // Without walls a port inside is the same port here.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let head = format!("GET /v1/sessions/{session}/ports/{port}/connection");
    let answers = tokio::spawn(async move {
        let (mut inside, _) = listener.accept().await.unwrap();
        let mut asked = String::new();
        inside.read_to_string(&mut asked).await.unwrap();
        inside
            .write_all(asked.to_uppercase().as_bytes())
            .await
            .unwrap();
    });
    let mut raw = upgrade(&site, &site.admin, &head, "zareba-port", "").await;
    raw.stream.write_all(b"hello").await.unwrap();
    raw.stream.shutdown().await.unwrap();
    let mut answer = raw.rest;
    timeout(PATIENCE, raw.stream.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, b"HELLO");
    answers.await.unwrap();
    let refused = Request::get(head.strip_prefix("GET ").unwrap())
        .key(&site.admin)
        .header("connection", "close, upgrade")
        .header("upgrade", "zareba-port");
    // Nobody listens any more.
    assert_eq!(site.send(refused).await.error(502), "bad_gateway");
    site.stop().await;
}
