//! The least HTTP/1.1 that keeps a connection busy: requests written in one piece, answers with
//! a `Content-Length` read into one buffer.
//!
//! A general client would cost more than the server that is measured.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

/// Longer than any answer here should take; a server that hangs must not hang the run.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Room for any answer but a large file.
const BUFFER_BYTES: usize = 64 * 1024;
/// No answer that is asked for here is as large.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A head beyond this is not one of ours.
const HEAD_BYTES_MAX: usize = 16 * 1024;

const NO_CONTENT: u16 = 204;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A request for `path`; with a body it is a `POST` of JSON, without one a `GET`.
pub(crate) fn request(path: &str, body: Option<&str>) -> Vec<u8> {
    match body {
        Some(body) => format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
        None => format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    }
    .into_bytes()
}

/// The part of an answer before its body.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Bytes of the head itself, the blank line included.
    length: usize,
    body_length: usize,
}

/// Reads a head; `None` when it is not all there yet.
fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
        ensure!(
            bytes.len() <= HEAD_BYTES_MAX,
            "the answer's head has no end"
        );
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).context("the answer's head is not text")?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
        .with_context(|| format!("not an HTTP/1.1 answer: {text:?}"))?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then_some(value.trim())
    });
    // Such an answer has no body, and does not say so.
    let length = if status == NO_CONTENT {
        Some("0")
    } else {
        length
    };
    let body_length = length
        .and_then(|length| length.parse().ok())
        .filter(|length| *length <= BODY_BYTES_MAX)
        .with_context(|| format!("the answer has no usable content-length: {text:?}"))?;
    Ok(Some(Head {
        status,
        length: end + 4,
        body_length,
    }))
}

/// An answer whose body lies in the connection's buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

/// A connection that is kept open, with at most one request on its way.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    pub(crate) fn open(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_WAIT))?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_WAIT))?;
                Stream::Unix(stream)
            }
        };
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(request),
            Stream::Unix(stream) => stream.write_all(request),
        }
    }

    pub(crate) fn receive(&mut self) -> anyhow::Result<Answer<'_>> {
        let mut filled = 0;
        let head = loop {
            filled += self.read_at(filled)?;
            if let Some(head) = parse_head(&self.buffer[..filled])? {
                break head;
            }
        };
        let end = head.length + head.body_length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while filled < end {
            filled += self.read_at(filled)?;
        }
        ensure!(filled == end, "the answer is longer than it said");
        Ok(Answer {
            status: head.status,
            body: &self.buffer[head.length..end],
        })
    }

    fn read_at(&mut self, place: usize) -> anyhow::Result<usize> {
        let room = &mut self.buffer[place..];
        let length = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(room),
            Stream::Unix(stream) => stream.read(room),
        };
        match length.context("cannot read the answer")? {
            0 => bail!("the connection was closed in the middle of an answer"),
            length => Ok(length),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_the_standard_has_them() {
        assert_eq!(
            request("/alive", None),
            b"GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n"
        );
        assert_eq!(
            request("/execute_action", Some("{\"ä\":1}")),
            "POST /execute_action HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: 8\r\n\r\n{\"ä\":1}"
                .as_bytes()
        );
    }

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\nCONTENT-Length:  3\r\n\r\nabc";
        for cut in 0..answer.len() - 3 {
            assert_eq!(parse_head(&answer[..cut]).unwrap(), None, "{cut}");
        }
        let head = Head {
            status: 200,
            length: answer.len() - 3,
            body_length: 3,
        };
        assert_eq!(parse_head(answer).unwrap(), Some(head));
    }

    #[test]
    fn an_answer_without_content_need_not_say_its_length() {
        let answer = b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n";
        let head = Head {
            status: 204,
            length: answer.len(),
            body_length: 0,
        };
        assert_eq!(parse_head(answer).unwrap(), Some(head));
    }

    #[test]
    fn answers_that_would_be_misread_are_refused() {
        let refused = |answer: &[u8]| parse_head(answer).unwrap_err().to_string();
        assert!(refused(b"SSH-2.0\r\n\r\n").starts_with("not an HTTP/1.1 answer"));
        assert!(refused(b"HTTP/1.1 2\r\n\r\n").starts_with("not an HTTP/1.1 answer"));
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(refused(chunked).starts_with("the answer has no usable content-length"));
        let huge = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
        assert!(refused(huge).starts_with("the answer has no usable content-length"));
        assert_eq!(
            refused(&[b'a'; HEAD_BYTES_MAX + 1]),
            "the answer's head has no end"
        );
    }

    #[test]
    fn an_answer_that_comes_in_pieces_is_put_together() {
        let (mut server, client) = UnixStream::pair().unwrap();
        let mut connection = Connection {
            stream: Stream::Unix(client),
            buffer: vec![0; BUFFER_BYTES],
        };
        let body = vec![b'x'; BUFFER_BYTES * 3];
        let sent = body.clone();
        let writer = std::thread::spawn(move || {
            server
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-")
                .unwrap();
            server
                .write_all(format!("Length: {}\r\n\r\n", sent.len()).as_bytes())
                .unwrap();
            server.write_all(&sent).unwrap();
        });
        assert_eq!(
            connection.receive().unwrap(),
            Answer {
                status: 404,
                body: &body
            }
        );
        writer.join().unwrap();
        let error = connection.receive().unwrap_err().to_string();
        assert_eq!(
            error,
            "the connection was closed in the middle of an answer"
        );
    }
}
