//! The least HTTP client that can say everything, right or wrong, byte by byte.

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};
use zareba_wire::Endpoint;

pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

pub(crate) async fn connect(endpoint: &Endpoint) -> Box<dyn Wire> {
    match endpoint {
        Endpoint::Tcp(address) => Box::new(TcpStream::connect(address).await.unwrap()),
        Endpoint::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        values.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// A request that closes its connection.
pub(crate) struct Ask {
    method: &'static str,
    target: String,
    host: Option<String>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

pub(crate) fn get(target: &str) -> Ask {
    Ask::new("GET", target)
}

pub(crate) fn post(target: &str) -> Ask {
    Ask::new("POST", target)
}

impl Ask {
    pub(crate) fn new(method: &'static str, target: &str) -> Self {
        let host = Some("localhost".to_owned());
        Self {
            method,
            target: target.to_owned(),
            host,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("X-Session-API-Key", key)
    }

    pub(crate) fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    pub(crate) fn json(mut self, document: &Value) -> Self {
        self.body = document.to_string().into_bytes();
        self.header("Content-Type", "application/json")
    }

    pub(crate) fn body(mut self, content_type: &str, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.header("Content-Type", content_type)
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        let head = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), content, b"\r\n--xyz--\r\n"].concat();
        self.body("multipart/form-data; boundary=xyz", &body)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nConnection: close\r\n",
            self.method, self.target
        );
        if let Some(host) = &self.host {
            text.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        [text.as_bytes(), &self.body].concat()
    }

    pub(crate) async fn of(self, endpoint: &Endpoint) -> Answer {
        let mut wire = connect(endpoint).await;
        wire.write_all(&self.bytes()).await.unwrap();
        let mut received = Vec::new();
        wire.read_to_end(&mut received).await.unwrap();
        parse(&received)
    }
}

pub(crate) fn parse(received: &[u8]) -> Answer {
    let shown = String::from_utf8_lossy(received);
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head in {shown:?}"));
    let head = std::str::from_utf8(&received[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers: Vec<_> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut body = received[end + 4..].to_vec();
    if headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked")
    {
        body = unchunked(&body);
    }
    Answer {
        status,
        headers,
        body,
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = body
            .windows(2)
            .position(|window| window == b"\r\n")
            .expect("chunk size");
        let size = std::str::from_utf8(&body[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[line + 2..line + 2 + size]);
        body = &body[line + 4 + size..];
    }
}
