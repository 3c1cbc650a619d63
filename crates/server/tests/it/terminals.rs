//! Terminals of a session over WebSockets.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message},
};

use crate::{events::connect, fixture::Site};

const PATIENCE: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TcpStream>;

async fn attach(site: &Site, path: &str, key: &str) -> Socket {
    connect(site.address, path, Some(key)).await.unwrap()
}

async fn message(socket: &mut Socket) -> Message {
    loop {
        let message = timeout(PATIENCE, socket.next()).await.unwrap();
        match message.unwrap().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

/// The next text message.
async fn notice(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = message(socket).await {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Output up to and with a text.
async fn until(socket: &mut Socket, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        match message(socket).await {
            Message::Binary(bytes) => seen.extend_from_slice(&bytes),
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&seen)),
        }
        let shown = String::from_utf8_lossy(&seen);
        if shown.contains(text) {
            return shown.into_owned();
        }
    }
}

async fn type_in(socket: &mut Socket, text: &str) {
    let bytes = text.as_bytes().to_vec();
    socket.send(Message::binary(bytes)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_is_typed_into_and_looked_at_by_several() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/terminals");
    let opened = site.post(&path, json!({})).await;
    let name = opened.expect(201)["name"].as_str().unwrap().to_owned();
    assert_eq!(
        opened.header("location"),
        Some(format!("{path}/{name}").as_str())
    );
    let socket_path = format!("{path}/{name}/socket");
    let mut first = attach(&site, &socket_path, &site.admin).await;
    assert_eq!(notice(&mut first).await, json!({ "cursor": 0 }));
    type_in(&mut first, "echo first$((1 + 1))\n").await;
    until(&mut first, "first2").await;
    let mut second = attach(&site, &socket_path, &site.admin).await;
    notice(&mut second).await;
    let resize = json!({ "resize": { "columns": 132, "rows": 40 } }).to_string();
    second.send(Message::text(resize)).await.unwrap();
    type_in(&mut second, "stty size\n").await;
    let seen = until(&mut second, "40 132").await;
    assert!(seen.contains("first2"), "{seen:?}");
    until(&mut first, "40 132").await;
    let nonsense = json!({ "resize": { "columns": 0, "rows": 40 } }).to_string();
    for text in [nonsense.as_str(), "[]", "[[80, 24]]", "{\"signal\": 9}"] {
        second.send(Message::text(text)).await.unwrap();
        let answer = notice(&mut second).await;
        assert!(answer["error"].is_string(), "{text}: {answer}");
    }
    type_in(&mut first, "exit 5\n").await;
    for socket in [&mut first, &mut second] {
        assert_eq!(notice(socket).await, json!({ "exit": { "code": 5 } }));
        assert!(matches!(message(socket).await, Message::Close(_)));
    }
    let shown = site.get(format!("{path}/{name}")).await.expect(200);
    assert_eq!(shown["exit"], json!({ "code": 5 }));
    assert_eq!(shown["size"], json!({ "columns": 132, "rows": 40 }));
    site.delete(format!("{path}/{name}")).await.expect(204);
    assert_eq!(
        site.get(format!("{path}/{name}")).await.error(404),
        "not_found"
    );
    site.stop().await;
}

/// HS-8, HS-9: who may only read looks and does not type; who has no key gets no connection, and
/// who has somebody else's gets to know nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_those_who_may_use_the_session_type() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/terminals");
    let body = json!({ "name": "t", "command": "cat" });
    site.post(&path, body.clone()).await.expect(201);
    assert_eq!(site.post(&path, body).await.error(409), "exists");
    let socket_path = format!("{path}/t/socket");
    let reader = site.key(json!({ "owner": "admin", "scope": "read" })).await;
    let mut looking = attach(&site, &socket_path, &reader).await;
    notice(&mut looking).await;
    type_in(&mut looking, "forbidden\n").await;
    let answer = notice(&mut looking).await;
    assert_eq!(answer["error"], "this key may look and not type");
    let mut typing = attach(&site, &socket_path, &site.admin).await;
    notice(&mut typing).await;
    type_in(&mut typing, "allowed\n").await;
    let seen = until(&mut looking, "allowed").await;
    assert!(!seen.contains("forbidden"), "{seen:?}");

    let stranger = site
        .key(json!({ "owner": "other", "scope": "session" }))
        .await;
    for (key, status) in [(None, 401), (Some(stranger.as_str()), 404)] {
        let refused = connect(site.address, &socket_path, key).await.unwrap_err();
        assert!(
            matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == status),
            "{refused:?}"
        );
    }
    let tickets = format!("/v1/sessions/{session}/tickets");
    let ticket = site.post(tickets, json!({})).await.expect(201);
    let ticket = ticket["ticket"].as_str().unwrap();
    let with_ticket = format!("{socket_path}?from=0&ticket={ticket}");
    let mut visitor = connect(site.address, &with_ticket, None).await.unwrap();
    assert_eq!(notice(&mut visitor).await, json!({ "cursor": 0 }));
    site.delete(format!("{path}/t")).await.expect(204);
    let end = notice(&mut typing).await;
    assert_eq!(end["exit"]["reason"], "it was closed");
    site.stop().await;
}
