//! A client of HTTP that does exactly what it is told, so that rules can be broken.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// A request to come.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self::new("POST", path)
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }

    /// With a `Host` of the server's own unless it has one.
    fn bytes(&self, version: &str, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/{version}\r\n", self.method, self.path);
        if !self.has("host") {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        if !self.has("connection") {
            head.push_str("Connection: close\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    fn has(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(found, _)| found.eq_ignore_ascii_case(name))
    }

    /// Sends it on a connection of its own and reads the whole answer.
    pub(crate) async fn send(&self, address: SocketAddr) -> Response {
        let stream = TcpStream::connect(address).await.unwrap();
        self.send_on(stream, &address.to_string()).await
    }

    pub(crate) async fn send_on(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        host: &str,
    ) -> Response {
        stream.write_all(&self.bytes("1.1", host)).await.unwrap();
        let mut answer = Vec::new();
        // A server that closes early has still said what it had to say.
        let _ = stream.read_to_end(&mut answer).await;
        Response::parse(&answer)
    }

    /// Sends it as HTTP/1.0, whose streams have no framing, and returns after the head.
    pub(crate) async fn open(&self, address: SocketAddr) -> (Response, BufReader<TcpStream>) {
        use tokio::io::AsyncBufReadExt as _;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let bytes = self.bytes("1.0", &address.to_string());
        stream.write_all(&bytes).await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).await.unwrap() == 0 {
                break;
            }
        }
        (Response::parse(head.as_bytes()), reader)
    }
}

/// Sends bytes as they are and reads until the server closes.
pub(crate) async fn send_raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        });
        Self {
            status: status.parse().unwrap(),
            headers: headers.collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{error} in {:?}", self.text()),
        }
    }

    /// The body, after making sure of the status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    /// The code of an error, after making sure of its status and of its shape.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> String {
        let body = self.expect(status);
        let error = &body["error"];
        assert!(error["message"].is_string(), "{body}");
        let id = error["request_id"].as_str().unwrap();
        assert_eq!(self.header("x-request-id"), Some(id));
        error["code"].as_str().unwrap().to_owned()
    }
}
