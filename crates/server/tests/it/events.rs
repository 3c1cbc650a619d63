//! Reading what happened: pages, server-sent events and WebSockets.

use std::{net::SocketAddr, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use crate::{fixture::Site, http::Request};

/// Reads server-sent events.
struct Reader {
    lines: BufReader<TcpStream>,
}

impl Reader {
    async fn open(site: &Site, request: Request) -> Self {
        let (head, lines) = request.open(site.address).await;
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Self { lines }
    }

    /// The number and data of the next event; comments are passed over.
    async fn next(&mut self) -> Option<(u64, Value)> {
        let (mut id, mut data) = (None, None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).await.unwrap() == 0 {
                return None;
            }
            if let Some(number) = line.strip_prefix("id: ") {
                id = Some(number.trim().parse().unwrap());
            } else if let Some(json) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(json).unwrap());
            } else if line == "\n"
                && let Some(data) = data.take()
            {
                return Some((id.unwrap(), data));
            }
        }
    }

    /// A comment, when that is what comes next.
    async fn comment(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).await.unwrap();
        line
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let site = Site::start().await;
    let session = site.session().await;
    for number in 0..5 {
        site.run(&session, &format!("echo {number}")).await;
    }
    let path = format!("/v1/sessions/{session}/events");
    let all = site.get(&path).await.expect(200);
    let all = all["events"].as_array().unwrap();
    let (mut from, mut paged) = (0, Vec::new());
    loop {
        let page = site.get(format!("{path}?from={from}&limit=3")).await;
        let page = page.expect(200);
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        paged.extend(events.clone());
        from = page["next"].as_u64().unwrap();
    }
    assert_eq!(&paged, all);
    for (number, event) in all.iter().enumerate() {
        assert_eq!(event["sequence"], number);
        assert_eq!(event["payload"]["id"], number);
    }
    site.stop().await;
}

/// HS-15: a stream that breaks off goes on without a gap and without a double.
#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/stream");
    let mut seen = Vec::new();
    let writer = async {
        for number in 0..20 {
            site.run(&session, &format!("echo {number}")).await;
        }
    };
    let reader = async {
        let mut last = None;
        while seen.len() < 40 {
            let mut request = Request::get(&path).key(&site.admin);
            if let Some(last) = last {
                request = request.header("Last-Event-ID", &format!("{last}"));
            }
            let mut reader = Reader::open(&site, request).await;
            for _ in 0..7 {
                let (id, event) = reader.next().await.unwrap();
                assert_eq!(event["sequence"], id);
                seen.push(id);
                last = Some(id);
            }
        }
    };
    tokio::join!(writer, reader);
    let expected: Vec<u64> = (0..seen.len() as u64).collect();
    assert_eq!(seen, expected);

    let from = Request::get(&format!("{path}?from=3")).key(&site.admin);
    let mut reader = Reader::open(&site, from).await;
    assert_eq!(reader.next().await.unwrap().0, 3);
    let bad = Request::get(&path)
        .key(&site.admin)
        .header("Last-Event-ID", "x");
    assert_eq!(site.send(bad).await.error(400), "invalid_request");
    site.stop().await;
}

#[tokio::test]
async fn a_silent_stream_says_that_it_is_there() {
    let site = Site::start_with(|settings| {
        settings.limits.ping_interval = Duration::from_millis(50);
    })
    .await;
    let session = site.session().await;
    let end = site
        .get(format!("/v1/sessions/{session}"))
        .await
        .expect(200);
    let path = format!(
        "/v1/sessions/{session}/events/stream?from={}",
        end["next_event"]
    );
    let mut reader = Reader::open(&site, Request::get(&path).key(&site.admin)).await;
    assert_eq!(reader.comment().await, ": ping\n");
    site.stop().await;
}

pub(crate) async fn connect(
    address: SocketAddr,
    path: &str,
    key: Option<&str>,
) -> Result<WebSocketStream<TcpStream>, tungstenite::Error> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("ws://{address}{path}").into_client_request()?;
    if let Some(key) = key {
        let value = format!("Bearer {key}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
    }
    Ok(client_async(request, stream).await?.0)
}

pub(crate) async fn next_event(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_socket_gets_events_as_they_come() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/socket?from=2");
    let mut socket = connect(site.address, &path, Some(&site.admin))
        .await
        .unwrap();
    site.run(&session, "echo for the socket").await;
    for expected in 2.. {
        let event = next_event(&mut socket).await;
        assert_eq!(event["sequence"], expected);
        if event["kind"] == "observation" {
            let text = event["payload"]["content"].as_str().unwrap();
            assert_eq!(text.trim(), "for the socket");
            break;
        }
    }
    socket.send(Message::Close(None)).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        assert!(message.is_close() || message.is_ping(), "{message:?}");
    }
    let refused = connect(site.address, &path, None).await.unwrap_err();
    assert!(matches!(refused, tungstenite::Error::Http(answer) if answer.status() == 401));
    let plain = site.get(&path).await;
    assert_eq!(plain.error(400), "invalid_request");
    site.stop().await;
}

/// HS-8: whoever does not answer pings is disconnected.
#[tokio::test]
async fn a_socket_that_says_nothing_is_closed() {
    let site = Site::start_with(|settings| {
        settings.limits.ping_interval = Duration::from_millis(100);
    })
    .await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/events/socket");
    let socket = connect(site.address, &path, Some(&site.admin))
        .await
        .unwrap();
    // Reads bytes and answers nothing: the pings stay unanswered.
    let mut stream = socket.into_inner();
    let mut bytes = Vec::new();
    let closed = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut bytes);
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    assert!(closed.is_ok());
    site.stop().await;
}

/// HS-8: a ticket opens one stream of its session, once.
#[tokio::test]
async fn a_ticket_opens_one_stream_once() {
    let site = Site::start().await;
    let session = site.session().await;
    let other = site.session().await;
    let issue = || async {
        let path = format!("/v1/sessions/{session}/tickets");
        let ticket = site
            .send(Request::new("POST", &path).key(&site.admin))
            .await;
        ticket.expect(201)["ticket"].as_str().unwrap().to_owned()
    };
    let ticket = issue().await;
    let stream = format!("/v1/sessions/{session}/events/stream?ticket={ticket}");
    let mut reader = Reader::open(&site, Request::get(&stream)).await;
    assert_eq!(reader.next().await.unwrap().0, 0);
    let again = site.send(Request::get(&stream)).await;
    assert_eq!(again.error(401), "unauthorized");

    let ticket = issue().await;
    let path = format!("/v1/sessions/{session}/events/socket?ticket={ticket}");
    let mut socket = connect(site.address, &path, None).await.unwrap();
    assert_eq!(next_event(&mut socket).await["sequence"], 0);

    let ticket = issue().await;
    let elsewhere = format!("/v1/sessions/{other}/events/stream?ticket={ticket}");
    let elsewhere = site.send(Request::get(&elsewhere)).await;
    assert_eq!(elsewhere.error(404), "not_found");

    let ticket = issue().await;
    let page = format!("/v1/sessions/{session}/events?ticket={ticket}");
    assert_eq!(
        site.send(Request::get(&page)).await.error(401),
        "unauthorized"
    );
    site.stop().await;
}

/// A stream does not outlive the key that opened it.
#[tokio::test]
async fn a_removed_key_ends_its_streams() {
    let site = Site::start_with(|settings| {
        settings.limits.ping_interval = Duration::from_millis(50);
    })
    .await;
    let session = site.session().await;
    let new = json!({ "owner": "admin", "scope": "read" });
    let created = site.post("/v1/keys", new).await.expect(201);
    let (id, secret) = (&created["key"]["id"], &created["secret"]);
    let path = format!("/v1/sessions/{session}/events/stream");
    let request = Request::get(&path).key(secret.as_str().unwrap());
    let mut reader = Reader::open(&site, request).await;
    assert_eq!(reader.next().await.unwrap().0, 0);
    let id = id.as_str().unwrap();
    assert_eq!(site.delete(format!("/v1/keys/{id}")).await.status, 204);
    let ended = async { while reader.next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
    assert!(ended.is_ok());
    site.stop().await;
}

#[tokio::test]
async fn what_is_too_large_for_an_event_is_read_apart() {
    let site = Site::start().await;
    let session = site.session().await;
    let large = "x".repeat(2 * 1024 * 1024);
    let write = json!({ "action": "write", "args": { "path": "large", "content": large } });
    let path = format!("/v1/sessions/{session}/actions");
    let written = site.post(&path, write).await.expect(200);
    let action = written["cause"].as_u64().unwrap();
    let events = format!("/v1/sessions/{session}/events?from={action}&limit=1");
    let page = site.get(&events).await.expect(200);
    let reference = &page["events"][0]["payload"]["args"]["content"];
    let digest = reference["$blob"].as_str().unwrap();
    let blob = format!("/v1/sessions/{session}/blobs/{digest}");
    let bytes = site.get(format!("{blob}?event={action}")).await;
    assert_eq!(bytes.status, 200);
    assert!(bytes.text().contains(&large));
    let unrelated = site.get(format!("{blob}?event=0")).await;
    assert_eq!(unrelated.error(404), "not_found");
    let other = site.session().await;
    site.run(&other, "true").await;
    let foreign = format!("/v1/sessions/{other}/blobs/{digest}?event={action}");
    assert_eq!(site.get(&foreign).await.error(404), "not_found");
    assert_eq!(site.get(&blob).await.error(400), "invalid_request");
    site.stop().await;
}
