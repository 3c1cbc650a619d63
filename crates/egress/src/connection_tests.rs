//! Connections through the proxy, with real sockets and a scripted world outside.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::record::{Decision, DecisionKind, End, VerdictKind};
use crate::stage::{SERVER, STRANGER, Script, Stage, server_at};
use crate::tls::tests::hello;
use crate::upstream::Route;

const POLICY: &str = r#"{"allow": ["good.example", "other.example", "*.wild.example"]}"#;

/// A proxy in front of a server on that port, to which `good.example` was resolved.
async fn stage_at(port: u16, policy: &str) -> (Stage, TcpListener) {
    let (listener, script) = server_at(port).await;
    let stage = Stage::new(policy, script);
    stage.resolved("good.example", SERVER);
    (stage, listener)
}

/// What the client reads until the connection ends; `None` when it is reset.
async fn heard(client: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    match client.read_to_end(&mut bytes).await {
        Ok(_) => Some(String::from_utf8(bytes).unwrap()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            None
        }
    }
}

async fn only_decision(stage: Stage) -> Decision {
    let mut decisions = stage.decisions().await;
    let decision = decisions.pop().unwrap();
    assert_eq!(decisions, []);
    decision
}

/// Sends `bytes` to `wanted`, expects a reset, and returns the code of the denial.
async fn reset_after(mut stage: Stage, wanted: &str, bytes: &[u8]) -> String {
    let mut client = stage.connect(wanted).await;
    client.write_all(bytes).await.unwrap();
    assert_eq!(heard(&mut client).await, None);
    assert_eq!(*stage.world.connections.lock().unwrap(), []);
    let decision = only_decision(stage).await;
    assert_eq!(decision.verdict, VerdictKind::Deny);
    decision.reason.unwrap().code
}

/// Sends a request to `wanted`, expects a refusal in HTTP, and returns its message.
async fn forbidden_after(mut stage: Stage, wanted: &str, request: &str) -> String {
    let mut client = stage.connect(wanted).await;
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = heard(&mut client).await.unwrap();
    drop(client);
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["code"], "egress_denied");
    assert_eq!(*stage.world.connections.lock().unwrap(), []);
    let decision = only_decision(stage).await;
    let message = decision.reason.unwrap().message;
    assert_eq!(body["error"]["message"], message);
    message
}

#[tokio::test]
async fn tls_to_an_allowed_name_passes_unbroken() {
    let (mut stage, listener) = stage_at(443, POLICY).await;
    let greeting = hello("good.example");
    let mut client = stage.connect("93.184.215.14:443").await;
    client.write_all(&greeting).await.unwrap();

    let (mut server, _) = listener.accept().await.unwrap();
    let mut received = vec![0; greeting.len()];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(received, greeting);
    server.write_all(b"answer").await.unwrap();
    drop(server);
    assert_eq!(heard(&mut client).await.as_deref(), Some("answer"));
    drop(client);

    let decision = only_decision(stage).await;
    let expected = Decision {
        time_ms: decision.time_ms,
        duration_ms: decision.duration_ms,
        name: Some("good.example".into()),
        address: Some(SERVER.parse().unwrap()),
        port: Some(443),
        verdict: VerdictKind::Allow,
        rule: Some("good.example".into()),
        end: Some(End::Closed),
        bytes_up: u64::try_from(greeting.len()).unwrap(),
        bytes_down: 6,
        ..Decision::begin(DecisionKind::Tcp)
    };
    assert_eq!(decision, expected);
}

#[tokio::test]
async fn tls_is_judged_by_the_name_that_it_says_eg_4() {
    for (name, code) in [
        ("evil.example", "name_not_allowed"),
        // Allowed, and never resolved to this address: a front for somebody else.
        ("other.example", "name_not_resolved"),
        ("a.wild.example", "name_not_resolved"),
        ("wild.example", "name_not_allowed"),
        ("localhost", "local_name"),
        ("93.184.215.14", "no_server_name"),
    ] {
        let (stage, _listener) = stage_at(443, POLICY).await;
        let found = reset_after(stage, "93.184.215.14:443", &hello(name)).await;
        assert_eq!(found, code, "{name}");
    }
}

#[tokio::test]
async fn an_allowed_name_at_another_address_is_denied_eg_4() {
    for (wanted, code) in [
        ("93.184.215.99:443", "name_not_resolved"),
        ("169.254.169.254:443", "special_address"),
        ("127.0.0.1:443", "special_address"),
        ("10.0.0.1:443", "special_address"),
        ("[::1]:443", "special_address"),
        ("[::ffff:169.254.169.254]:443", "special_address"),
        ("[64:ff9b::a9fe:a9fe]:443", "special_address"),
        ("[fd00:ec2::254]:443", "special_address"),
    ] {
        let (stage, _listener) = stage_at(443, POLICY).await;
        let found = reset_after(stage, wanted, &hello("good.example")).await;
        assert_eq!(found, code, "{wanted}");
    }
}

#[tokio::test]
async fn garbage_on_a_port_of_the_web_is_denied() {
    let raw = &b"SSH-2.0-OpenSSH\r\n"[..];
    for bytes in [raw, &[0; 100], &[0x16, 3, 1, 0, 1, 9], &[0xff; 20_000]] {
        let (stage, _listener) = stage_at(443, POLICY).await;
        assert_eq!(
            reset_after(stage, "93.184.215.14:443", bytes).await,
            "unreadable"
        );
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_in_time_is_denied_eg_7() {
    let policy = r#"{"allow": ["good.example"], "limits": {"opening_ms": 20}}"#;
    for bytes in [&b""[..], b"GET / HT", &hello("good.example")[..50]] {
        let (stage, _listener) = stage_at(443, policy).await;
        assert_eq!(
            reset_after(stage, "93.184.215.14:443", bytes).await,
            "unreadable"
        );
    }
}

#[tokio::test]
async fn an_http_request_passes_alone_on_its_connection() {
    let (mut stage, listener) = stage_at(80, POLICY).await;
    let mut client = stage.connect("93.184.215.14:80").await;
    let request =
        "POST /secret?token=1 HTTP/1.1\r\nHost: good.example\r\nContent-Length: 4\r\n\r\nbody";
    let second = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    client
        .write_all(format!("{request}{second}").as_bytes())
        .await
        .unwrap();
    client.write_all(second.as_bytes()).await.unwrap();

    let (mut server, _) = listener.accept().await.unwrap();
    let forwarded = "POST /secret?token=1 HTTP/1.1\r\nHost: good.example\r\n\
                     Content-Length: 4\r\nConnection: close\r\n\r\nbody";
    let mut received = vec![0; forwarded.len()];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(String::from_utf8(received).unwrap(), forwarded);
    server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    server.shutdown().await.unwrap();
    assert_eq!(
        heard(&mut client).await.as_deref(),
        Some("HTTP/1.1 200 OK\r\n\r\n")
    );
    drop(client);
    // Nothing of the second request has left, and nothing will.
    let mut rest = Vec::new();
    let _ = server.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");

    let decision = only_decision(stage).await;
    assert_eq!(decision.bytes_up, u64::try_from(forwarded.len()).unwrap());
    assert_eq!(decision.end, Some(End::Closed));
    let text = serde_json::to_string(&decision).unwrap();
    assert!(
        !text.contains("secret") && !text.contains("token"),
        "{text}"
    );
}

#[tokio::test]
async fn http_is_judged_by_the_host_that_it_says_eg_4() {
    for (request, reason) in [
        (
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "`evil.example:80` is not allowed; add `evil.example` to native.allow",
        ),
        (
            "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
            "`other.example` was not resolved to 93.184.215.14",
        ),
        (
            "GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
            "target and its Host header disagree",
        ),
        (
            "GET / HTTP/1.1\r\nHost: good.example\r\nHost: evil.example\r\n\r\n",
            "does not name exactly one host",
        ),
        (
            "GET / HTTP/1.1\r\nHost: good.example:8080\r\n\r\n",
            "names another port",
        ),
        (
            "CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n",
            "CONNECT is not passed on",
        ),
        (
            "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\n\
             Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "malformed or ambiguous",
        ),
        (
            "GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
            "93.184.215.14 port 80 is not allowed",
        ),
    ] {
        let (stage, _listener) = stage_at(80, POLICY).await;
        let message = forbidden_after(stage, "93.184.215.14:80", request).await;
        assert!(message.contains(reason), "{request:?}: {message}");
    }
}

#[tokio::test]
async fn the_metadata_service_is_out_of_reach_eg_6() {
    let (stage, _listener) = stage_at(80, POLICY).await;
    let request = "GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n";
    let message = forbidden_after(stage, "169.254.169.254:80", request).await;
    assert!(
        message.starts_with("169.254.169.254 is a cloud metadata service"),
        "{message}"
    );
}

#[tokio::test]
async fn this_machine_is_out_of_reach_by_its_public_address_too_eg_6() {
    let (_listener, script) = server_at(443).await;
    let routes = [(SERVER.parse().unwrap(), Route::Own)].into();
    let stage = Stage::new(POLICY, Script { routes, ..script });
    stage.resolved("good.example", SERVER);
    let code = reset_after(stage, "93.184.215.14:443", &hello("good.example")).await;
    assert_eq!(code, "own_address");
}

#[tokio::test]
async fn an_unreachable_server_is_told_from_a_denied_one() {
    let mut stage = Stage::new(POLICY, Script::default());
    stage.resolved("good.example", STRANGER);
    let mut client = stage.connect("93.184.215.99:80").await;
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n")
        .await
        .unwrap();
    let answer = heard(&mut client).await.unwrap();
    drop(client);
    assert!(
        answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
        "{answer}"
    );
    let decision = only_decision(stage).await;
    assert_eq!(decision.verdict, VerdictKind::Allow);
    assert_eq!(decision.end, Some(End::Unreachable));
}

const ODD: &str = r#"{"allow": ["good.example:5432", "other.example:443"]}"#;

#[tokio::test]
async fn a_server_may_speak_first_on_another_port() {
    let (mut stage, listener) = stage_at(5432, ODD).await;
    let mut client = stage.connect("93.184.215.14:5432").await;
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"220 hello\r\n").await.unwrap();
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).await.unwrap();
    client.write_all(b"\0\x01binary").await.unwrap();
    client.shutdown().await.unwrap();
    let mut received = Vec::new();
    server.read_to_end(&mut received).await.unwrap();
    assert_eq!(received, b"\0\x01binary");
    // The client has closed its half; the server's half still carries.
    server.write_all(b"bye").await.unwrap();
    drop(server);
    assert_eq!(heard(&mut client).await.as_deref(), Some("bye"));

    let decision = only_decision(stage).await;
    assert_eq!(decision.name.as_deref(), Some("good.example"));
    assert_eq!(decision.rule.as_deref(), Some("good.example:5432"));
    assert_eq!((decision.bytes_up, decision.bytes_down), (8, 14));
}

#[tokio::test]
async fn another_port_is_open_for_resolved_names_only_eg_4() {
    for wanted in ["93.184.215.99:5432", "10.0.0.1:5432", "93.184.215.14:5433"] {
        let (mut stage, _listener) = stage_at(5432, ODD).await;
        stage.resolved("other.example", STRANGER);
        let mut client = stage.connect(wanted).await;
        assert_eq!(heard(&mut client).await, None);
        assert_eq!(*stage.world.connections.lock().unwrap(), []);
        let decision = only_decision(stage).await;
        assert_eq!(decision.verdict, VerdictKind::Deny, "{wanted}");
    }
}

#[tokio::test]
async fn a_name_said_on_another_port_is_checked_before_it_passes_eg_4() {
    let requests = [
        hello("evil.example"),
        hello("1.2.3.4"),
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
        b"\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
    ];
    for request in requests {
        let (mut stage, listener) = stage_at(5432, ODD).await;
        let mut client = stage.connect("93.184.215.14:5432").await;
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(&request).await.unwrap();
        let answer = heard(&mut client).await;
        drop(client);
        let is_http = request.ends_with(b"\r\n\r\n");
        let is_forbidden = answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 403"));
        assert_eq!(is_forbidden, is_http);
        let mut received = Vec::new();
        let _ = server.read_to_end(&mut received).await;
        assert_eq!(received, b"");
        let decision = only_decision(stage).await;
        assert_eq!(
            (decision.verdict, decision.bytes_up),
            (VerdictKind::Deny, 0)
        );
    }
}

#[tokio::test]
async fn tls_and_http_to_the_right_name_pass_on_another_port() {
    let plain = b"GET / HTTP/1.1\r\nHost: good.example:5432\r\n\r\n".to_vec();
    for request in [hello("good.example"), plain] {
        let (mut stage, listener) = stage_at(5432, ODD).await;
        let mut client = stage.connect("93.184.215.14:5432").await;
        client.write_all(&request).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut received = [0; 20];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(received, request[..20]);
        drop((client, server));
        assert_eq!(only_decision(stage).await.verdict, VerdictKind::Allow);
    }
}

#[tokio::test]
async fn a_rule_by_address_needs_no_name() {
    let policy = r#"{"allow": ["93.184.215.14:80"]}"#;
    let (mut stage, listener) = stage_at(80, policy).await;
    let mut client = stage.connect("93.184.215.14:80").await;
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"anything").await.unwrap();
    drop(server);
    client.shutdown().await.unwrap();
    assert_eq!(heard(&mut client).await.as_deref(), Some("anything"));
    let decision = only_decision(stage).await;
    assert_eq!(decision.rule.as_deref(), Some("93.184.215.14:80"));
}

#[tokio::test]
async fn an_idle_connection_is_ended_eg_7() {
    let policy = r#"{"allow": ["93.184.215.14:80"], "limits": {"idle_ms": 30}}"#;
    let (mut stage, listener) = stage_at(80, policy).await;
    let mut client = stage.connect("93.184.215.14:80").await;
    let (_server, _) = listener.accept().await.unwrap();
    assert_eq!(heard(&mut client).await, None);
    assert_eq!(only_decision(stage).await.end, Some(End::Idle));
}

#[tokio::test]
async fn a_used_up_sandbox_is_cut_off_eg_7() {
    let policy = r#"{"allow": ["93.184.215.14:80"], "limits": {"bytes_total": 10}}"#;
    let (mut stage, listener) = stage_at(80, policy).await;
    let mut client = stage.connect("93.184.215.14:80").await;
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"0123456789").await.unwrap();
    let mut received = [0; 10];
    server.read_exact(&mut received).await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(heard(&mut client).await, None);
    let mut late = stage.connect("93.184.215.14:80").await;
    assert_eq!(heard(&mut late).await, None);

    let decisions = stage.decisions().await;
    let codes = decisions
        .iter()
        .map(|decision| decision.reason.as_ref().unwrap().code.as_str());
    assert_eq!(codes.collect::<Vec<_>>(), ["bytes_total"; 2]);
    assert_eq!(decisions[0].bytes_up, 10);
}

#[tokio::test]
async fn stopping_ends_connections_and_writes_them_down_eg_7() {
    let policy = r#"{"allow": ["93.184.215.14:80", "good.example"]}"#;
    let (mut stage, listener) = stage_at(80, policy).await;
    let mut open = stage.connect("93.184.215.14:80").await;
    let (mut server, _) = listener.accept().await.unwrap();
    open.write_all(b"x").await.unwrap();
    server.read_u8().await.unwrap();
    let mut silent = stage.connect("93.184.215.99:443").await;
    // The second connection has said nothing; it is denied rather than forgotten.
    let decisions = tokio::time::timeout(Duration::from_secs(10), stage.stop())
        .await
        .unwrap();
    assert_eq!(heard(&mut open).await, None);
    assert_eq!(heard(&mut silent).await, None);
    let mut found: Vec<_> = decisions.iter().map(|d| (d.verdict, d.end)).collect();
    found.sort_by_key(|(verdict, _)| *verdict == VerdictKind::Deny);
    let expected = [
        (VerdictKind::Allow, Some(End::Shutdown)),
        (VerdictKind::Deny, None),
    ];
    assert_eq!(found, expected);
}
