//! A client's first words: which protocol they are, and whom they ask for.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::denial::Fault;
use crate::host::HostName;
use crate::http::{self, HEAD_BYTES_MAX, Head};
use crate::tls::{self, Hello};

/// Most that is kept while it is not clear what the client wants.
const OPENING_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// Pieces in which it may come. Each is looked at together with what came before.
const PIECES_MAX: usize = 4096;
/// What is set aside at first: most greetings and heads.
const OPENING_BYTES: usize = 2048;

/// What a client began with. Nothing of it has been passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// TLS, for this server or for none in particular.
    Tls {
        name: Option<HostName>,
        bytes: Vec<u8>,
    },
    /// An HTTP request, and what came with its head.
    Http { head: Head, rest: Vec<u8> },
    /// Something else, which names nobody.
    Raw { bytes: Vec<u8> },
}

/// An opening that cannot be judged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unclear {
    pub(crate) fault: Fault,
    /// Whether the client would understand an answer in HTTP.
    pub(crate) speaks_http: bool,
}

/// From when on a client is expected to say whom it wants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// It has to speak first.
    FromNow(Duration),
    /// It may let the server speak first, and has to finish what it begins.
    FromFirstByte(Duration),
}

/// Reads until it is clear what the client wants.
pub(crate) async fn read_opening(
    reader: &mut (impl AsyncRead + Unpin),
    patience: Patience,
) -> Result<Opening, Unclear> {
    let mut bytes = Vec::with_capacity(OPENING_BYTES);
    let limit = match patience {
        Patience::FromNow(limit) => limit,
        Patience::FromFirstByte(limit) => {
            read_some(reader, &mut bytes).await?;
            limit
        }
    };
    let outcome = timeout(limit, read_on(reader, &mut bytes)).await;
    outcome.unwrap_or_else(|_| Err(Unclear::because(Fault::Silent, &bytes)))
}

async fn read_on(
    reader: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> Result<Opening, Unclear> {
    for _ in 0..PIECES_MAX {
        match look(bytes) {
            Err(fault) => return Err(Unclear::because(fault, bytes)),
            Ok(Some(opening)) => return Ok(opening),
            Ok(None) if bytes.len() >= OPENING_BYTES_MAX => break,
            Ok(None) => {}
        }
        if read_some(reader, bytes).await? == 0 {
            return at_end(bytes);
        }
    }
    Err(Unclear::because(Fault::TooLong, bytes))
}

async fn read_some(
    reader: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> Result<usize, Unclear> {
    let room = OPENING_BYTES_MAX.saturating_sub(bytes.len());
    let mut limited = reader.take(u64::try_from(room).unwrap_or(u64::MAX));
    let read = limited.read_buf(bytes).await;
    read.map_err(|_| Unclear::because(Fault::HungUp, bytes))
}

/// What a client that says no more meant: half a line without a protocol's mark is nobody's
/// request, and passed on as it is.
fn at_end(bytes: &[u8]) -> Result<Opening, Unclear> {
    match first_line(bytes) {
        Line::Unfinished if !bytes.starts_with(&[tls::HANDSHAKE]) => Ok(Opening::Raw {
            bytes: bytes.to_vec(),
        }),
        _ => Err(Unclear::because(Fault::HungUp, bytes)),
    }
}

impl Unclear {
    fn because(fault: Fault, bytes: &[u8]) -> Self {
        let speaks_http = first_line(bytes) == Line::Http;
        Self { fault, speaks_http }
    }
}

/// What the bytes so far are; `None` when more are needed to tell.
fn look(bytes: &[u8]) -> Result<Option<Opening>, Fault> {
    if bytes.first() == Some(&tls::HANDSHAKE) {
        return Ok(match tls::read_hello(bytes)? {
            Hello::More => None,
            Hello::Wants(name) => Some(Opening::Tls {
                name,
                bytes: bytes.to_vec(),
            }),
        });
    }
    match first_line(bytes) {
        Line::Unfinished => Ok(None),
        Line::Other => Ok(Some(Opening::Raw {
            bytes: bytes.to_vec(),
        })),
        Line::Http => Ok(match http::read_head(bytes)? {
            http::Reading::More => None,
            http::Reading::Complete(head, taken) => {
                let rest = bytes.get(taken..).unwrap_or_default().to_vec();
                Some(Opening::Http { head, rest })
            }
        }),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Unfinished,
    Http,
    Other,
}

/// Whether the first line is one of HTTP, read so generously that no server could take for a
/// request what passes here as something else: anything printable with the protocol's mark in
/// it, behind any number of line ends. The strict reading comes after.
fn first_line(bytes: &[u8]) -> Line {
    const MARK: &[u8] = b"HTTP/";
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = bytes.iter().position(|byte| !is_line_end(byte));
    let rest = start
        .and_then(|start| bytes.get(start..))
        .unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n');
    let line = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
    let is_strange = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r');
    if line.iter().any(is_strange) {
        return Line::Other;
    }
    let mut places = line.windows(MARK.len());
    if places.any(|place| place.eq_ignore_ascii_case(MARK)) {
        return Line::Http;
    }
    match end {
        Some(_) => Line::Other,
        None => Line::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::tests::hello;

    const PATIENCE: Patience = Patience::FromNow(Duration::from_secs(5));

    async fn open(bytes: &[u8]) -> Result<Opening, Unclear> {
        read_opening(&mut &bytes[..], PATIENCE).await
    }

    #[tokio::test]
    async fn the_first_bytes_tell_the_protocol() {
        let opening = open(&hello("a.example")).await.unwrap();
        assert!(
            matches!(opening, Opening::Tls { name: Some(_), .. }),
            "{opening:?}"
        );
        let opening = open(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\nrest")
            .await
            .unwrap();
        assert!(matches!(opening, Opening::Http { rest, .. } if rest == b"rest"));
        for raw in [
            &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
            b"EHLO me\r\n",
            b"\0\0\0\x08\x04\xd2\x16\x2f",
            b"AMQP\0\0\x09\x01",
            b"*1\r\n$4\r\nPING\r\n",
            b"half a line",
            b"",
        ] {
            let bytes = raw.to_vec();
            assert_eq!(open(raw).await, Ok(Opening::Raw { bytes }));
        }
    }

    #[tokio::test]
    async fn no_request_passes_as_something_else() {
        for bytes in [
            &b"\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"[..],
            b"\n\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET\t/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"get /\xff http/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET / HTTP/1.1\nHost: evil.example\n\n",
            b"FROB / HTTP/1.1\r\nHost:evil.example\r\nHost: a.example\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let unclear = open(bytes).await.unwrap_err();
            assert!(unclear.speaks_http, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_greeting_byte_by_byte_is_read() {
        let (mut client, mut proxy) = tokio::io::duplex(1);
        let sent = hello("a.example");
        let bytes = sent.clone();
        let sending = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut client, &bytes)
                .await
                .unwrap();
            client
        });
        let opening = read_opening(&mut proxy, PATIENCE).await;
        let name = HostName::parse("a.example").ok();
        assert_eq!(opening, Ok(Opening::Tls { name, bytes: sent }));
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_not_waited_for_eg_7() {
        for start in [
            &b""[..],
            b"GET / HTTP/1.1\r\nHost: a",
            &hello("a.example")[..40],
        ] {
            let (mut client, mut proxy) = tokio::io::duplex(100);
            tokio::io::AsyncWriteExt::write_all(&mut client, start)
                .await
                .unwrap();
            let begun = tokio::time::Instant::now();
            let unclear = read_opening(&mut proxy, PATIENCE).await.unwrap_err();
            assert_eq!(unclear.fault, Fault::Silent);
            assert_eq!(begun.elapsed(), Duration::from_secs(5));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_lets_the_server_speak_first_has_time() {
        let (mut client, mut proxy) = tokio::io::duplex(100);
        let patience = Patience::FromFirstByte(Duration::from_secs(5));
        let reading = tokio::spawn(async move { read_opening(&mut proxy, patience).await });
        tokio::time::sleep(Duration::from_secs(60)).await;
        tokio::io::AsyncWriteExt::write_all(&mut client, b"PING\r\n")
            .await
            .unwrap();
        let bytes = b"PING\r\n".to_vec();
        assert_eq!(reading.await.unwrap(), Ok(Opening::Raw { bytes }));
    }

    #[tokio::test]
    async fn endless_first_words_are_cut_off() {
        for byte in [b'a', b'\n'] {
            let unclear = open(&vec![byte; 100_000]).await.unwrap_err();
            assert_eq!(unclear.fault, Fault::TooLong);
        }
    }
}
