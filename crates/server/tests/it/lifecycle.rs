//! Starting and ending.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};
use zareba_server::{BindError, Listen, Server, ServerSettings, Transport};

use crate::{
    fixture::{Site, run},
    http::Request,
};

/// HS-17: streams end where they can be resumed, half-sent requests do not hold it up, and what
/// is under way is answered.
#[tokio::test]
async fn it_ends_in_order() {
    let mut site = Site::start_with(|settings| {
        settings.limits.drain = Duration::from_secs(5);
    })
    .await;
    let session = site.session().await;
    let stream = format!("/v1/sessions/{session}/events/stream");
    let (head, mut events) = Request::get(&stream)
        .key(&site.admin)
        .open(site.address)
        .await;
    assert_eq!(head.status, 200);
    let half = tokio::net::TcpStream::connect(site.address).await.unwrap();
    let path = format!("/v1/sessions/{session}/actions");
    let request = Request::post(&path, &run("sleep 0.5; echo in time")).key(&site.admin);
    let address = site.address;
    let running = tokio::spawn(async move { request.send(address).await });
    // The action is under way once it is in the log.
    let mut records = site.sessions.log().subscribe(session.parse().unwrap(), 0);
    loop {
        let record = records.next().await.unwrap();
        if record.kind.as_str() == "action" {
            break;
        }
    }
    let started = Instant::now();
    site.shut_down();
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).await.unwrap();
    let answer = running.await.unwrap().expect(200);
    assert_eq!(answer["content"].as_str().unwrap().trim(), "in time");
    site.stop().await;
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(half);
}

#[tokio::test]
async fn a_wait_at_the_end_is_answered_with_a_number() {
    let mut site = Site::start_with(|settings| {
        settings.limits.drain = Duration::from_millis(1500);
    })
    .await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let request = Request::post(&path, &run("sleep 3")).key(&site.admin);
    let address = site.address;
    let running = tokio::spawn(async move { request.send(address).await });
    let mut records = site.sessions.log().subscribe(session.parse().unwrap(), 0);
    while records.next().await.unwrap().kind.as_str() != "action" {}
    site.shut_down();
    let answer = running.await.unwrap().expect(202);
    assert_eq!(answer["session"], json!(session));
    site.stop().await;
}

/// HS-17: a WebSocket is told why it ends.
#[tokio::test]
async fn sockets_are_closed_in_words() {
    let mut site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/socket");
    let connected = crate::events::connect(site.address, &path, Some(&site.admin));
    let mut socket = connected.await.unwrap();
    crate::events::next_event(&mut socket).await;
    site.shut_down();
    let frame = loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => break frame.unwrap(),
            Message::Text(_) | Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(frame.code, CloseCode::Away);
    site.stop().await;
}

/// HS-3: keys do not travel in the clear over a network.
#[tokio::test]
async fn an_address_of_the_network_needs_tls() {
    let site = Site::start().await;
    let settings = |transport| {
        ServerSettings::new(Listen::Tcp {
            address: ([0, 0, 0, 0], 0).into(),
            transport,
        })
    };
    let refused = Server::bind(settings(Transport::Plain), site.sessions.clone()).await;
    assert!(matches!(refused, Err(BindError::Unprotected { .. })));
    let proxied = settings(Transport::BehindTlsProxy);
    Server::bind(proxied, site.sessions.clone()).await.unwrap();
    site.stop().await;
}

#[tokio::test]
async fn a_unix_socket_serves_the_same() {
    let site = Site::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("api.sock");
    let settings = ServerSettings::new(Listen::Unix(path.clone()));
    let server = Server::bind(settings, site.sessions.clone()).await.unwrap();
    // The first key is made once for a log.
    assert_eq!(server.first_key(), None);
    assert_eq!(server.local_address(), None);
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async {
        let _ = ended.await;
    }));
    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let answer = Request::get("/v1/status").key(&site.admin);
    answer.send_on(stream, "anything").await.expect(200);
    drop(end);
    serving.await.unwrap();
    assert!(!path.exists());
    site.stop().await;
}
