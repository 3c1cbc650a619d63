//! Sockets, concurrency, clients that leave, and the end of a server.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    task::JoinSet,
    time::timeout,
};
use zareba_wire::{
    Endpoint,
    server::{BindError, Server, ServerLimits, ServerOptions},
};

use crate::{
    fake::{keyed, keyless, run_observation, start, start_at},
    http::{connect, get, parse, post},
};

const KEY: &str = "testkey";
const PATIENCE: Duration = Duration::from_secs(20);

fn run(command: &str) -> Value {
    json!({"action": {"action": "run", "args": {"command": command}}})
}

fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix(path.to_owned())
}

#[tokio::test]
async fn a_unix_socket_is_private_answers_and_goes_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("executor.sock");
    let server = start_at(&unix(&path), keyless());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    // No browser can open a Unix socket, so that any host will do.
    let answer = get("/alive")
        .host(Some("whatever"))
        .of(&server.endpoint)
        .await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"status": "ok"}))
    );
    server.stop().await;
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_live_socket_is_not_stolen_and_a_stale_one_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("executor.sock");
    let first = start_at(&unix(&path), keyless());
    let error = Server::bind(&unix(&path), keyless()).unwrap_err();
    assert!(matches!(error, BindError::SocketInUse { .. }), "{error:?}");
    assert_eq!(get("/alive").of(&first.endpoint).await.status, 200);
    first.stop().await;

    // What a killed server leaves behind: a socket that nobody listens on.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let second = start_at(&unix(&path), keyless());
    assert_eq!(get("/alive").of(&second.endpoint).await.status, 200);
    second.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn files_that_are_no_sockets_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    fs::write(&path, "data").unwrap();
    let error = Server::bind(&unix(&path), keyless()).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[tokio::test]
async fn a_socket_that_was_replaced_is_not_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("executor.sock");
    let server = start_at(&unix(&path), keyless());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "someone else's").unwrap();
    server.stop().await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "someone else's");
}

#[tokio::test]
async fn a_tcp_port_in_use_is_a_typed_error() {
    let server = start(keyless());
    let error = Server::bind(&server.endpoint, keyless()).unwrap_err();
    let BindError::Listen { endpoint, source } = error else {
        panic!("{error:?}")
    };
    assert_eq!(endpoint, server.endpoint);
    assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn requests_run_beside_each_other() {
    let server = start(keyed(KEY));
    let endpoint = server.endpoint.clone();
    let waiting: Vec<_> = (0..16)
        .map(|_| {
            let endpoint = endpoint.clone();
            tokio::spawn(async move {
                post("/execute_action")
                    .key(KEY)
                    .json(&run("wait"))
                    .of(&endpoint)
                    .await
            })
        })
        .collect();
    server
        .service
        .waiting
        .acquire_many(16)
        .await
        .unwrap()
        .forget();
    let quick = post("/execute_action")
        .key(KEY)
        .json(&run("quick"))
        .of(&endpoint)
        .await;
    assert_eq!(quick.json(), run_observation("quick", "quick").to_value());
    server.service.release.add_permits(16);
    for answer in waiting {
        let answer = answer.await.unwrap();
        assert_eq!(answer.json(), run_observation("wait", "wait").to_value());
    }
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_order() {
    let server = start(keyed(KEY));
    let mut wire = connect(&server.endpoint).await;
    let one = |command: &str, connection: &str| {
        let body = run(command).to_string();
        format!(
            "POST /execute_action HTTP/1.1\r\nHost: a\r\nX-Session-API-Key: {KEY}\r\n\
             Connection: {connection}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let both = format!("{}{}", one("first", "keep-alive"), one("second", "close"));
    wire.write_all(both.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut wire, &mut received)
        .await
        .unwrap();
    let text = String::from_utf8(received).unwrap();
    let second = text.rfind("HTTP/1.1 200").unwrap();
    assert!(text[..second].contains("\"content\":\"first\""), "{text}");
    assert_eq!(
        parse(&text.as_bytes()[second..]).json()["content"],
        "second"
    );
}

#[tokio::test]
async fn a_client_that_leaves_drops_its_request() {
    let server = start(keyed(KEY));
    let mut wire = connect(&server.endpoint).await;
    wire.write_all(&post("/execute_action").key(KEY).json(&run("wait")).bytes())
        .await
        .unwrap();
    server.service.waiting.acquire().await.unwrap().forget();
    drop(wire);
    let abandoned = timeout(PATIENCE, server.service.abandoned.acquire()).await;
    abandoned
        .expect("the future must be dropped")
        .unwrap()
        .forget();
    assert_eq!(get("/alive").of(&server.endpoint).await.status, 200);
}

#[tokio::test]
async fn shutdown_lets_a_running_request_finish_and_takes_no_new_one() {
    let server = start(keyed(KEY));
    let (endpoint, service) = (server.endpoint.clone(), server.service.clone());
    let running = tokio::spawn({
        let endpoint = endpoint.clone();
        async move {
            post("/execute_action")
                .key(KEY)
                .json(&run("wait"))
                .of(&endpoint)
                .await
        }
    });
    let _idle = connect(&endpoint).await;
    service.waiting.acquire().await.unwrap().forget();
    let stopping = tokio::spawn(server.stop());
    // The listener is closed by the end at the latest; the request is answered before that.
    service.release.add_permits(1);
    let answer = timeout(PATIENCE, running).await.unwrap().unwrap();
    assert_eq!(answer.json(), run_observation("wait", "wait").to_value());
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
    let Endpoint::Tcp(address) = endpoint else {
        panic!()
    };
    let refused = tokio::net::TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn shutdown_does_not_wait_longer_than_its_deadline() {
    let limits = ServerLimits {
        drain: Duration::from_millis(200),
        ..ServerLimits::default()
    };
    let server = start(ServerOptions {
        limits,
        ..keyed(KEY)
    });
    let service = server.service.clone();
    let mut stuck = connect(&server.endpoint).await;
    stuck
        .write_all(&post("/execute_action").key(KEY).json(&run("wait")).bytes())
        .await
        .unwrap();
    let mut half = connect(&server.endpoint).await;
    half.write_all(b"GET /alive HT").await.unwrap();
    service.waiting.acquire().await.unwrap().forget();
    timeout(Duration::from_secs(5), server.stop())
        .await
        .expect("the deadline must hold");
    service
        .abandoned
        .try_acquire()
        .expect("the request must be dropped")
        .forget();
}

/// Serves as long as whoever started it lives.
#[tokio::test]
#[ignore = "is started by the test below, with few descriptors"]
async fn serving_with_few_descriptors() {
    let server = start(keyless());
    let Endpoint::Tcp(address) = server.endpoint else {
        panic!("it serves on TCP");
    };
    writeln!(std::io::stdout(), "\nserving {address}").unwrap();
    let starter_is_gone = || std::io::stdin().read_to_end(&mut Vec::new());
    let waited = tokio::task::spawn_blocking(starter_is_gone).await;
    waited.unwrap().unwrap();
    server.stop().await;
}

/// HS-11: without a descriptor for one more connection the loop pauses, hangs up on whoever waits,
/// and goes on as soon as there is one.
#[tokio::test]
async fn a_loop_that_cannot_accept_pauses_and_goes_on() {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["lifecycle::serving_with_few_descriptors", "--exact"])
        .args(["--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(address) = line.strip_prefix("serving ") {
            break address.to_owned();
        }
    };
    let mut crowd = JoinSet::new();
    for _ in 0..120 {
        let mut client = TcpStream::connect(&address).await.unwrap();
        crowd.spawn(async move { client.read(&mut [0]).await });
    }
    // Nothing is asked, so that the first to hear anything is one that was not let in.
    let hung_up = timeout(Duration::from_secs(5), crowd.join_next()).await;
    assert!(
        matches!(hung_up, Ok(Some(Ok(Ok(0) | Err(_))))),
        "{hung_up:?}"
    );
    let before = cpu_ticks(&child);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let spent = cpu_ticks(&child) - before;
    assert!(spent <= 10, "{spent} ticks of 10 ms in half a second");
    crowd.shutdown().await;
    let served = async { while !is_alive(&address).await {} };
    timeout(PATIENCE, served).await.unwrap();
    drop(child.stdin.take());
    assert!(child.wait().await.unwrap().success());
}

/// What a process has used of processors.
fn cpu_ticks(process: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id().unwrap())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

async fn is_alive(address: &str) -> bool {
    let ask = async {
        let mut client = TcpStream::connect(address).await?;
        let request = format!("GET /alive HTTP/1.1\r\nHost: {address}\r\n\r\n");
        client.write_all(request.as_bytes()).await?;
        let mut status = [0; 12];
        client.read_exact(&mut status).await?;
        std::io::Result::Ok(status)
    };
    ask.await.is_ok_and(|status| status == *b"HTTP/1.1 200")
}
