//! The whole proxy on its sockets, as the program runs it.

use std::net::{Ipv4Addr, TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::path::Path;
use std::process::Command;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;
use crate::record::{Counters, VerdictKind};
use crate::stage::{SERVER, Script, World, read_log};
use crate::tls::tests::hello;

fn output(directory: &Path) -> Output {
    Output {
        decisions: directory.join("decisions.jsonl"),
        counters: directory.join("egress.json"),
    }
}

fn policy(json: &str) -> Policy {
    serde_json::from_str(json).unwrap()
}

fn question(name: &str) -> Vec<u8> {
    let mut message = Message::new(9, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message.to_vec().unwrap()
}

/// 127.0.0.0/8 is local on every machine, so a listener on every address shows which one a
/// program wanted, as it does inside a sandbox.
#[tokio::test]
async fn the_address_that_a_program_wanted_is_the_one_that_is_judged_eg_1() {
    let server = TcpListener::bind("127.4.4.4:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    // On the same port, on another address, stands the proxy.
    let listener = StdTcpListener::bind(("127.9.9.9", port)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let rules = format!(r#"{{"allow": ["127.9.9.9:{port}"]}}"#);
    let world = Arc::new(World::with(Script {
        doors: [(listener.local_addr().unwrap(), server.local_addr().unwrap())].into(),
        ..Script::default()
    }));
    let sockets = Sockets {
        tcp: vec![listener],
        udp: Vec::new(),
    };
    let serving = tokio::spawn(serve_with(
        Box::new(world.clone()),
        sockets,
        policy(&rules),
        output(directory.path()),
        async {
            let _ = stopped.await;
        },
    ));

    let mut client = TcpStream::connect(("127.9.9.9", port)).await.unwrap();
    let (mut outside, _) = server.accept().await.unwrap();
    client.write_all(b"ping").await.unwrap();
    let mut received = [0; 4];
    outside.read_exact(&mut received).await.unwrap();
    drop((client, outside));
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();

    assert_eq!(&received, b"ping");
    let wanted: SocketAddr = format!("127.9.9.9:{port}").parse().unwrap();
    assert_eq!(*world.connections.lock().unwrap(), [wanted]);
    let sums = std::fs::read(directory.path().join("egress.json")).unwrap();
    let sums: Counters = serde_json::from_slice(&sums).unwrap();
    assert_eq!((sums.allowed, sums.denied, sums.bytes_up), (1, 0, 4));
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_eg_7() {
    let listener = StdTcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rules = format!(r#"{{"allow": ["{address}"], "limits": {{"connections": 1}}}}"#);
    let world = Arc::new(World::with(Script {
        doors: [(address, server.local_addr().unwrap())].into(),
        ..Script::default()
    }));
    let sockets = Sockets {
        tcp: vec![listener],
        udp: Vec::new(),
    };
    let output = output(directory.path());
    let log = output.decisions.clone();
    let stopping = async {
        let _ = stopped.await;
    };
    let serving = serve_with(Box::new(world), sockets, policy(&rules), output, stopping);
    let serving = tokio::spawn(serving);

    let first = TcpStream::connect(address).await.unwrap();
    let (_held, _) = server.accept().await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    assert!(second.read_u8().await.is_err());
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    drop(first);
    let decisions = read_log(log);
    let denied = decisions
        .iter()
        .filter_map(|decision| decision.reason.as_ref());
    assert_eq!(
        denied
            .map(|reason| reason.code.as_str())
            .collect::<Vec<_>>(),
        ["connections"]
    );
}

#[tokio::test]
async fn lookups_are_answered_on_datagrams_eg_5() {
    let socket = StdUdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let world = World::with(Script {
        names: [("good.example", vec![SERVER])].into(),
        ..Script::default()
    });
    let sockets = Sockets {
        tcp: Vec::new(),
        udp: vec![socket],
    };
    let rules = policy(r#"{"allow": ["good.example"]}"#);
    let serving = tokio::spawn(serve_with(
        Box::new(Arc::new(world)),
        sockets,
        rules,
        output(directory.path()),
        async {
            let _ = stopped.await;
        },
    ));

    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(address).await.unwrap();
    for (name, code, answers) in [
        ("good.example.", ResponseCode::NoError, 1),
        ("evil.example.", ResponseCode::NXDomain, 0),
    ] {
        client.send(&question(name)).await.unwrap();
        let mut buffer = [0; 1500];
        let length = client.recv(&mut buffer).await.unwrap();
        let answer = Message::from_vec(&buffer[..length]).unwrap();
        assert_eq!(answer.metadata.response_code, code);
        assert_eq!(answer.answers.len(), answers);
    }
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn lookups_are_answered_on_streams_eg_5() {
    let world = World::with(Script {
        names: [("good.example", vec![SERVER])].into(),
        ..Script::default()
    });
    let directory = tempfile::tempdir().unwrap();
    let output = output(directory.path());
    let (recorder, recording) = Recorder::open(&output.decisions, output.counters).unwrap();
    let recording = tokio::spawn(recording.run());
    let (_close, closing) = watch::channel(false);
    let rules = policy(r#"{"allow": ["good.example"]}"#);
    let proxy = Proxy::new(rules, Box::new(Arc::new(world)), recorder, closing);
    let (mut client, accepted) = crate::stage::pair().await;
    let serving = tokio::spawn(dns::serve_stream(Arc::new(proxy), accepted));

    let question = question("good.example.");
    for _ in 0..2 {
        let length = u16::try_from(question.len()).unwrap();
        client.write_u16(length).await.unwrap();
        client.write_all(&question).await.unwrap();
        let length = client.read_u16().await.unwrap();
        let mut answer = vec![0; length.into()];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    }
    client.write_u16(u16::MAX).await.unwrap();
    assert!(client.read_u8().await.is_err());
    serving.await.unwrap();
    recording.await.unwrap();
}

/// The test starts itself again in a network of its own, in which every address is local, and
/// does its work there.
#[tokio::test]
#[ignore = "needs root"]
async fn a_sandbox_s_whole_network_ends_at_the_proxy_eg_1() {
    if is_every_address_local() {
        return work_inside().await;
    }
    let this = "serve::tests::a_sandbox_s_whole_network_ends_at_the_proxy_eg_1";
    let script = "ip link set lo up && ip route add local 0.0.0.0/0 dev lo \
                  && ip -6 route add local ::/0 dev lo \
                  && exec \"$0\" --exact \"$1\" --ignored --nocapture";
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(this)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}\n{errors}");
}

/// Where it is, the way to a public address starts at that address.
fn is_every_address_local() -> bool {
    let socket = StdUdpSocket::bind("0.0.0.0:0").unwrap();
    let source = socket
        .connect((SERVER, 9))
        .and_then(|()| socket.local_addr());
    source.is_ok_and(|source| source.ip().to_string() == SERVER)
}

async fn work_inside() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = Arc::new(World::with(Script {
        names: [("good.example", vec![SERVER])].into(),
        doors: [(
            SocketAddr::new(SERVER.parse().unwrap(), 443),
            server.local_addr().unwrap(),
        )]
        .into(),
        ..Script::default()
    }));
    let any = Ipv4Addr::UNSPECIFIED;
    let sockets = Sockets {
        tcp: vec![
            StdTcpListener::bind((any, 443)).unwrap(),
            StdTcpListener::bind(("::", 80)).unwrap(),
        ],
        udp: vec![StdUdpSocket::bind((any, 53)).unwrap()],
    };
    let directory = tempfile::tempdir().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let rules = policy(r#"{"allow": ["good.example"]}"#);
    let output = output(directory.path());
    let log = output.decisions.clone();
    let stopping = async {
        let _ = stopped.await;
    };
    let serving = tokio::spawn(serve_with(
        Box::new(world),
        sockets,
        rules,
        output,
        stopping,
    ));

    look_up_anywhere().await;
    greet(&server).await;
    knock_on_other_doors().await;

    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    let verdicts = read_log(log).into_iter().map(|decision| decision.verdict);
    let expected = [VerdictKind::Allow, VerdictKind::Allow, VerdictKind::Deny];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

/// A name server at an address that nobody ever configured answers, from that address.
async fn look_up_anywhere() {
    let resolver = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    resolver.connect("198.51.100.53:53").await.unwrap();
    resolver.send(&question("good.example.")).await.unwrap();
    let mut buffer = [0; 1500];
    let length = resolver.recv(&mut buffer).await.unwrap();
    assert_eq!(
        Message::from_vec(&buffer[..length]).unwrap().answers.len(),
        1
    );
}

/// TLS to the address that the lookup gave reaches the server outside.
async fn greet(server: &TcpListener) {
    let mut client = TcpStream::connect((SERVER, 443)).await.unwrap();
    let greeting = hello("good.example");
    client.write_all(&greeting).await.unwrap();
    let (mut outside, _) = server.accept().await.unwrap();
    let mut received = vec![0; greeting.len()];
    outside.read_exact(&mut received).await.unwrap();
    assert_eq!(received, greeting);
    drop((client, outside));
}

/// What is not allowed is refused in words where there is a listener, by the kernel elsewhere.
async fn knock_on_other_doors() {
    let mut metadata = TcpStream::connect("[fd00:ec2::254]:80").await.unwrap();
    metadata
        .write_all(b"GET / HTTP/1.1\r\nHost: x.example\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    metadata.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let refused = TcpStream::connect((SERVER, 8443)).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}
