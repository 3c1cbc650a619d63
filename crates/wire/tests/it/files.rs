//! Files as bytes at the edges: an executor without them, requests that make no sense, and an
//! executor that lies (G-1).

use futures_util::StreamExt as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use zareba_wire::{
    Endpoint,
    client::{ClientError, ExecutorClient},
    files::{Digest, FileFailure, ListRequest, ReadRequest},
};

use crate::{
    fake::{keyed, start},
    http::{Ask, get},
};

fn read_of(path: &str) -> ReadRequest {
    ReadRequest {
        path: path.to_owned(),
        range: None,
        digest: Digest::Skip,
    }
}

#[tokio::test]
async fn an_executor_without_files_says_so() {
    let server = start(keyed("right"));
    let key = zareba_wire::SessionKey::new("right").unwrap();
    let client = ExecutorClient::new(server.endpoint.clone(), Some(key));
    let error = client.read_file(&read_of("/f")).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::File(error) if error.reason == FileFailure::Unsupported),
        "{error:?}"
    );
    assert!(!error.may_have_run());
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_named() {
    let server = start(keyed("right"));
    for (method, target, word) in [
        ("GET", "/files/content", "`path` is missing"),
        ("GET", "/files/content?path=f&rnage=0-", "rnage"),
        ("GET", "/files/content?path=f&range=9-0", "`range`"),
        ("GET", "/files/status?path=f&links=maybe", "`links`"),
        ("GET", "/files/entries?path=f&limit=0", "`limit`"),
        ("PUT", "/files/content?path=f&mode=999", "`mode`"),
        ("PUT", "/files/content?path=f&mode=4755", "`mode`"),
        ("PUT", "/files/content?path=f&expected=yes", "`expected`"),
        ("DELETE", "/files?path=f&depth=all", "`depth`"),
    ] {
        let answer = Ask::new(method, target)
            .key("right")
            .of(&server.endpoint)
            .await;
        assert_eq!(answer.status, 400, "{target}");
        let document = answer.json();
        assert_eq!(document["code"], "invalid_request");
        assert!(
            document["detail"].as_str().unwrap().contains(word),
            "{document}"
        );
    }
    let long = format!("/files/content?path={}", "n".repeat(20_000));
    let answer = get(&long).key("right").of(&server.endpoint).await;
    assert_eq!(answer.status, 414);
}

/// An executor that answers one request with these bytes.
async fn liar(answer: String) -> (ExecutorClient, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let _ = stream.read(&mut request).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _ = stream.shutdown().await;
    });
    (ExecutorClient::new(endpoint, None), task)
}

fn content(described: &str, length: usize, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nx-zareba-file: {described}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_file_that_is_not_as_described_is_an_error() {
    let status = json!({
        "kind": "file", "size": 5, "mode": 420, "modified_ns": 0, "version": "1",
    });
    let good = json!({ "status": status, "start": 0 }).to_string();
    for answer in [
        content("{}", 5, "hello"),
        content("nonsense", 5, "hello"),
        content(r#"{"status": {"kind": "door"}, "start": 0}"#, 5, "hello"),
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello".to_owned(),
    ] {
        let (client, task) = liar(answer.clone()).await;
        let error = client.read_file(&read_of("/f")).await.unwrap_err();
        assert!(
            matches!(error, ClientError::InvalidAnswer { .. }),
            "{answer}: {error:?}"
        );
        task.await.unwrap();
    }
    let (client, task) = liar(content(&good, 50, "hello")).await;
    let mut file = client.read_file(&read_of("/f")).await.unwrap();
    assert_eq!((file.length, file.status.size), (50, 5));
    let mut pieces = Vec::new();
    while let Some(piece) = file.stream.next().await {
        pieces.push(piece);
    }
    assert!(pieces.last().unwrap().is_err(), "{pieces:?}");
    task.await.unwrap();
}

#[tokio::test]
async fn a_page_that_makes_no_sense_is_an_error() {
    let body = json!({ "entries": [{ "name": 5 }], "truncated": false }).to_string();
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let (client, task) = liar(answer).await;
    let request = ListRequest {
        path: "/".to_owned(),
        after: None,
        limit: 10,
    };
    let error = client.list_directory(&request).await.unwrap_err();
    assert!(
        matches!(error, ClientError::InvalidAnswer { .. }),
        "{error:?}"
    );
    task.await.unwrap();
}
