//! `zareba tools serve`: who may call, from where, and what reaches the terminal.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring, pki_types::ServerName,
};
use serde_json::{Value, json};

use crate::{
    announced::{Announced, bearer},
    support::{Place, Told, request_on},
};

const MODULE: &str = "def double(number: int) -> int:\n    \
    \"\"\"Doubles.\\x1b[2J\"\"\"\n    return 2 * number\n\
    def fail():\n    raise ValueError('a\\x1b]0;b\\x07c\\u202ed')\n\
    def hostile():\n    return 'kept \\x1b[2J'\n";

fn with_module() -> Place {
    let place = Place::new();
    fs::write(place.path("workspace").join("my_tools.py"), MODULE).unwrap();
    place
}

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let port: &[&str] = match more.contains(&"--port") {
        true => &[],
        false => &["--port", "0"],
    };
    let all = [
        &["tools", "serve", "--runtime", "cli", "--workspace", "."][..],
        &["--python", "/usr/bin/python3", "-o", "json"],
        port,
        more,
        &["my_tools.double"],
    ];
    all.concat()
}

fn start(place: &Place, more: &[&str]) -> Announced {
    let mut command = place.zareba(&words(more));
    command.stderr(Stdio::null());
    Announced::start(command)
}

/// Has a number doubled, showing this; returns the status and the body.
fn double(server: &Announced, headers: &str) -> (u16, Value) {
    double_on(server.connect(), headers)
}

fn double_on(stream: impl Read + Write, headers: &str) -> (u16, Value) {
    let headers = format!("{headers}content-type: application/json\r\n");
    let body = br#"{"args": [4], "kwargs": {}}"#;
    let answer = request_on(stream, "POST", "/double", &headers, body);
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

#[test]
fn a_token_is_asked_for_also_on_loopback_hs_2() {
    let place = with_module();
    let server = start(&place, &[]);
    assert!(server.address().ip().is_loopback());
    let file = server.token_file();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(&file).unwrap().trim_end().to_owned();
    assert!(token.len() >= 32);
    assert_eq!(double(&server, "").0, 401);
    assert_eq!(double(&server, &bearer(&token[1..])).0, 401);
    let (status, answer) = double(&server, &bearer(&token));
    assert_eq!((status, answer), (200, json!({ "output": "8" })));
    // Nobody sees it in the list of processes.
    let line = fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(!String::from_utf8(line).unwrap().contains(&token));
    server.end();
    assert!(!fs::exists(&file).unwrap());
}

#[test]
fn a_token_comes_from_a_file_and_never_from_the_command_line_hs_2() {
    let place = with_module();
    let file = place.path("token").display().to_string();
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let server = start(&place, &["--token-file", &file]);
    assert_eq!(server.told()["token_file"], json!(file));
    assert_eq!(double(&server, "").0, 401);
    let shown = bearer("0123456789abcdef0123456789abcdef");
    assert_eq!(double(&server, &shown).0, 200);
    server.end();
    assert!(fs::exists(&file).unwrap(), "it is not ours to remove");

    let told = place.output(&words(&["--token", "0123456789abcdef0123456789abcdef"]));
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    fs::write(&file, "guess me\n").unwrap();
    let told = place.output(&words(&["--token-file", &file]));
    assert_eq!(told.code, Some(120));
    assert!(!told.stderr.contains("guess me"), "{}", told.stderr);
}

#[test]
fn two_servers_with_the_same_port_have_a_token_each() {
    let place = with_module();
    let first = start(&place, &[]);
    let port = first.address().port().to_string();
    let second = start(&place, &["--host", "127.0.0.2", "--port", &port]);
    let files = [first.token_file(), second.token_file()];
    assert_ne!(files[0], files[1]);
    let [ours, theirs] = files.map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(double(&first, &bearer(ours.trim_end())).0, 200);
    assert_eq!(double(&second, &bearer(theirs.trim_end())).0, 200);
    assert_eq!(double(&second, &bearer(ours.trim_end())).0, 401);
    second.end();
    assert!(fs::exists(first.token_file()).unwrap());
    first.end();
}

#[test]
fn whoever_says_so_opens_the_tools_to_this_machine_but_to_no_page_hs_5_hs_6() {
    let place = with_module();
    let server = start(&place, &["--open"]);
    assert_eq!(server.told()["token_file"], Value::Null);
    assert_eq!(double(&server, "").0, 200);
    assert_eq!(double(&server, "origin: https://evil.example\r\n").0, 403);
    server.end();
}

#[test]
fn other_machines_are_served_with_tls_only_hs_3() {
    let place = with_module();
    for more in [&["--host", "0.0.0.0"][..], &["--host", "0.0.0.0", "--open"]] {
        let told = place.output(&words(more));
        assert_eq!(told.code, Some(120));
        assert!(told.stderr.contains("without TLS"), "{}", told.stderr);
        assert!(told.stderr.contains("--tls-cert"), "{}", told.stderr);
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = place.path("cert.pem").display().to_string();
    let key = place.path("key.pem").display().to_string();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = [
        "--host",
        "0.0.0.0",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let server = start(&place, &tls);
    assert!(server.url().starts_with("https://"));
    let token = fs::read_to_string(server.token_file()).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let secured = || {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&config), name).unwrap();
        StreamOwned::new(connection, server.connect())
    };
    let (status, answer) = double_on(secured(), &bearer(token.trim_end()));
    assert_eq!((status, answer), (200, json!({ "output": "8" })));
    assert_eq!(double_on(secured(), "").0, 401);
    let mut plain = server.connect();
    plain
        .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    // A reset is as good as an end.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    server.end();

    fs::write(&key, "no key").unwrap();
    let told = place.output(&words(&tls));
    assert_eq!(told.code, Some(120));
    assert!(
        told.stderr.contains("cannot read a private key"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_proxy_that_does_tls_is_taken_at_its_word_hs_3() {
    let place = with_module();
    let server = start(&place, &["--host", "0.0.0.0", "--behind-tls-proxy"]);
    let token = fs::read_to_string(server.token_file()).unwrap();
    assert_eq!(double(&server, "").0, 401);
    assert_eq!(double(&server, &bearer(token.trim_end())).0, 200);
    server.end();
}

#[test]
fn nothing_that_a_tool_says_orders_the_terminal_about() {
    let place = with_module();
    let tools = |words: &[&str]| -> Told {
        let more = [
            "--runtime",
            "cli",
            "--python",
            "/usr/bin/python3",
            "--workspace",
            ".",
        ];
        place.output(&[&["tools"], words, &more].concat())
    };
    let told = tools(&["ls", "my_tools.double"]);
    assert!(
        told.stdout.contains(r"Doubles.\u{1b}[2J"),
        "{}",
        told.stdout
    );
    let told = tools(&["call", "fail", "--entrypoint", "my_tools.fail"]);
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr
            .contains(r"ValueError: a\u{1b}]0;b\u{7}c\u{202e}d"),
        "{}",
        told.stderr
    );
    // A program that reads the result gets what the tool returned.
    let told = tools(&["call", "hostile", "--entrypoint", "my_tools.hostile"]);
    assert_eq!(told.stdout, "kept \u{1b}[2J\n");
}
