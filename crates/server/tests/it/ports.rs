//! Shared ports: a program in a sandbox, seen through the server.
//!
//! The runtime of these tests has no walls, so that a server in this process is as good as one
//! inside; one test starts a real one in the session's shell.

use std::{net::SocketAddr, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::{
    events::connect,
    fixture::Site,
    http::{Request, Response},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A program that answers every request with the same bytes, and tells what it was sent.
pub(crate) struct Program {
    pub(crate) port: u16,
    seen: tokio::sync::mpsc::Receiver<String>,
    task: JoinHandle<()>,
}

impl Program {
    pub(crate) async fn answering(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = tokio::sync::mpsc::channel(16);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !is_complete(&request) {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let _ = sender.send(request).await;
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { port, seen, task }
    }

    pub(crate) async fn request(&mut self) -> String {
        timeout(PATIENCE, self.seen.recv()).await.unwrap().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The head has come, and a body of the length that it says.
fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

pub(crate) async fn share(site: &Site, session: &str, port: u16) -> (String, String) {
    let path = format!("/v1/sessions/{session}/ports/{port}");
    let shared = site.post(path, json!({})).await.expect(200);
    let path = shared["path"].as_str().unwrap().to_owned();
    let token = path.strip_prefix("/p/").unwrap().strip_suffix('/').unwrap();
    assert_eq!(token.len(), 32);
    let url = format!("http://{token}.localhost:{}/", site.address.port());
    assert_eq!(shared["url"], url);
    (path.clone(), token.to_owned())
}

/// G-1, UI-4: a page of a sandbox on our origin has no origin, sets no cookie, and its program
/// gets no key.
#[tokio::test]
async fn a_path_leads_to_the_program_and_confines_its_pages() {
    let site = Site::start().await;
    let session = site.session().await;
    let mut program = Program::answering(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nConnection: close, X-Hop\r\n\
          X-Hop: 1\r\nCache-Control: max-age=9\r\nContent-Length: 5\r\n\r\nhello",
    )
    .await;
    let (path, token) = share(&site, &session, program.port).await;
    let request = Request::new("POST", &format!("{path}a%20b/%ff?c=d%2F"))
        .key(&site.admin)
        .header("X-API-Key", &site.admin)
        .header("X-Session-API-Key", &site.admin)
        .header("Cookie", "zareba=secret")
        .header("Origin", "http://anywhere.example")
        .header("X-Forwarded-For", "1.2.3.4")
        .header("Content-Type", "text/plain")
        .body(b"the body".to_vec());
    let answer = site.send(request).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("sandbox ") && !policy.contains("same-origin"),
        "{policy}"
    );
    for name in ["set-cookie", "x-hop", "cross-origin-resource-policy"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("cache-control"), Some("max-age=9"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    let seen = program.request().await;
    assert!(
        seen.starts_with("POST /a%20b/%ff?c=d%2F HTTP/1.1\r\n"),
        "{seen}"
    );
    assert!(seen.ends_with("the body"), "{seen}");
    assert!(
        !seen.contains("zrb_") && !seen.contains("secret") && !seen.contains("1.2.3.4"),
        "{seen}"
    );
    assert!(
        seen.contains(&format!("host: localhost:{}\r\n", program.port)),
        "{seen}"
    );
    assert!(
        seen.contains(&format!("x-forwarded-prefix: /p/{token}\r\n")),
        "{seen}"
    );
    assert!(seen.contains("x-forwarded-for: 127.0.0.1\r\n"), "{seen}");

    // Nobody needs a key, and a page without the slash is sent to the one with it.
    let bare = site.send(Request::get(&format!("/p/{token}?x=1"))).await;
    assert_eq!(
        (bare.status, bare.header("location")),
        (307, Some(format!("/p/{token}/?x=1").as_str()))
    );
    site.stop().await;
}

/// A page with a name of its own keeps its cookies, for that name only.
#[tokio::test]
async fn a_name_leads_to_the_program_as_well() {
    let site = Site::start().await;
    let session = site.session().await;
    let mut program = Program::answering(
        b"HTTP/1.1 302 Found\r\nLocation: /login\r\nSet-Cookie: a=1; Domain=localhost\r\n\
          Set-Cookie: zareba_x=1\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let (path, token) = share(&site, &session, program.port).await;
    let host = format!("{token}.localhost:{}", site.address.port());
    let request = Request::get("/x?y")
        .header("Host", &host)
        .header("Cookie", "mine=1; zareba_session=2");
    let answer = site.send(request).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (302, Some("/login"))
    );
    assert_eq!(answer.header("set-cookie"), Some("a=1"));
    assert_eq!(answer.header("content-security-policy"), None);
    let seen = program.request().await;
    assert!(seen.starts_with("GET /x?y HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("cookie: mine=1\r\n"), "{seen}");
    assert!(
        seen.contains(&format!("x-forwarded-host: {host}\r\n")),
        "{seen}"
    );
    let by_path = site.send(Request::get(&path)).await;
    assert_eq!(
        by_path.header("location"),
        Some(format!("{path}login").as_str())
    );

    let unknown = format!("{}.localhost:{}", "0".repeat(32), site.address.port());
    let unknown = site.send(Request::get("/").header("Host", &unknown)).await;
    assert_eq!(unknown.error(404), "not_found");
    site.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_told_in_our_words() {
    let site = Site::start().await;
    let session = site.session().await;
    let unknown = site
        .send(Request::get(&format!("/p/{}/", "0".repeat(32))))
        .await;
    assert_eq!(unknown.error(404), "not_found");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (path, _) = share(&site, &session, port).await;
    assert_eq!(
        site.send(Request::get(&path)).await.error(502),
        "bad_gateway"
    );
    for answer in [
        b"no HTTP at all\r\n\r\n".as_slice(),
        b"HTTP/1.1 101 Go\r\n\r\n",
        b"",
    ] {
        let program = Program::answering(answer).await;
        let (path, _) = share(&site, &session, program.port).await;
        let refused = site.send(Request::get(&path)).await;
        assert_eq!(
            refused.error(502),
            "bad_gateway",
            "{:?}",
            String::from_utf8_lossy(answer)
        );
    }
    let zero = site
        .post(format!("/v1/sessions/{session}/ports/0"), json!({}))
        .await;
    assert_eq!(zero.error(400), "invalid_request");
    site.stop().await;
}

#[tokio::test]
async fn an_address_is_taken_back_with_what_goes_through_it() {
    let site = Site::start().await;
    let session = site.session().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // An answer without an end.
    let endless = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nfirst";
        stream.write_all(head).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    });
    let (path, _) = share(&site, &session, port).await;
    let ports = format!("/v1/sessions/{session}/ports");
    let listed = site.get(&ports).await.expect(200);
    let listed = listed["ports"].as_array().unwrap();
    let listed = listed.iter().find(|found| found["port"] == port).unwrap();
    assert_eq!(
        (&listed["listening"], &listed["share"]["path"]),
        (&json!(true), &json!(path))
    );
    let (head, mut body) = Request::get(&path).open(site.address).await;
    assert_eq!(head.status, 200);
    let mut first = [0; 5];
    timeout(PATIENCE, body.read_exact(&mut first))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&first, b"first");
    site.delete(format!("{ports}/{port}")).await.expect(204);
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, body.read_to_end(&mut rest))
        .await
        .unwrap();
    assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    assert_eq!(
        site.delete(format!("{ports}/{port}")).await.error(404),
        "not_found"
    );
    timeout(PATIENCE, endless).await.unwrap().unwrap();
    site.stop().await;
}

/// WebSockets go through, by path and by name.
#[tokio::test]
async fn a_websocket_echoes_through_a_shared_port() {
    let site = Site::start().await;
    let session = site.session().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut socket = accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() || message.is_binary() {
                    socket.send(message).await.unwrap();
                }
            }
        }
    });
    let (path, _) = share(&site, &session, port).await;
    let mut socket = connect(site.address, &format!("{path}chat"), None)
        .await
        .unwrap();
    for text in ["one", "two"] {
        socket.send(Message::text(text)).await.unwrap();
        let answer = timeout(PATIENCE, socket.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(answer, Message::text(text));
    }
    let large = Message::binary(vec![7; 500_000]);
    socket.send(large.clone()).await.unwrap();
    let answer = timeout(PATIENCE, socket.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(answer, large);
    // Taken back, it is cut.
    site.delete(format!("/v1/sessions/{session}/ports/{port}"))
        .await
        .expect(204);
    let cut = timeout(PATIENCE, socket.next()).await.unwrap();
    assert!(matches!(cut, None | Some(Err(_))), "{cut:?}");
    echo.abort();
    site.stop().await;
}

/// A real server that an agent has started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_a_session_is_seen() {
    let site = Site::start().await;
    let session = site.session().await;
    let command = "mkdir site && echo '<h1>hi</h1>' > site/index.html && \
                   (python3 -u -m http.server --bind 127.0.0.1 --directory site 0 > log 2>&1 &) && \
                   until grep -o 'port [0-9]*' log; do sleep 0.05; done";
    let ran = site.run(&session, command).await;
    let content = ran["content"].as_str().unwrap();
    let port = content.split("port ").nth(1).unwrap();
    let port: u16 = port.split_whitespace().next().unwrap().parse().unwrap();
    let (path, _) = share(&site, &session, port).await;
    let page = site.send(Request::get(&path)).await;
    assert_eq!((page.status, page.text().as_str()), (200, "<h1>hi</h1>\n"));
    assert_eq!(page.header("content-type"), Some("text/html"));
    let missing = site.send(Request::get(&format!("{path}none"))).await;
    assert_eq!(missing.status, 404);
    assert!(
        missing.text().contains("Error response"),
        "{}",
        missing.text()
    );
    let gone: SocketAddr = ([127, 0, 0, 1], port).into();
    site.delete(format!("/v1/sessions/{session}"))
        .await
        .expect(204);
    assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    assert!(TcpStream::connect(gone).await.is_err());
    site.stop().await;
}

/// HS-9: ports of others do not exist.
#[tokio::test]
async fn only_those_who_may_use_the_session_share_its_ports() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/ports/80");
    let reader = site.key(json!({ "owner": "admin", "scope": "read" })).await;
    let stranger = site
        .key(json!({ "owner": "other", "scope": "session" }))
        .await;
    let ask = |key: &str| Request::post(&path, &json!({})).key(key);
    let answers: Vec<Response> = vec![
        site.send(ask(&reader)).await,
        site.send(ask(&stranger)).await,
    ];
    assert_eq!(answers[0].error(403), "forbidden");
    assert_eq!(answers[1].error(404), "not_found");
    site.stop().await;
}
