//! The head of a request: its host, how its body is framed, and what is passed on.
//!
//! Everything that two servers could read differently is refused: two lengths, folded lines,
//! bare line ends, spaces before a colon, a target that names another host than the header.

use crate::denial::Fault;
use crate::host::Host;

/// Request line and headers together.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers in one head.
const HEADERS_MAX: usize = 128;

/// Headers about this connection, which are not the server's business.
const DROPPED: &[&str] = &[
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
];

/// What the bytes of a connection say so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The head is not complete.
    More,
    /// The head, and how many bytes it took.
    Complete(Head, usize),
}

/// A request's head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Whom the request is for.
    pub(crate) host: Host,
    /// The port that the `Host` header names, if it does.
    pub(crate) port: Option<u16>,
    /// What follows the head.
    pub(crate) framing: Framing,
    /// What is sent in its place.
    pub(crate) forwarded: Vec<u8>,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes, often none.
    Length(u64),
    /// In chunks that say how long they are.
    Chunked,
}

/// Reads a head that may not be there completely.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Reading, Fault> {
    let searched = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
    let end = searched.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return match bytes.len() {
            0..HEAD_BYTES_MAX => Ok(Reading::More),
            _ => Err(Fault::TooLong),
        };
    };
    let text = searched.get(..end).ok_or(Fault::Http)?;
    let head = parse(text)?;
    Ok(Reading::Complete(head, end + 4))
}

/// Reads a head without the empty line at its end.
fn parse(bytes: &[u8]) -> Result<Head, Fault> {
    let mut lines = Lines(Some(bytes));
    let request = RequestLine::parse(lines.next().ok_or(Fault::Http)??)?;
    let mut forwarded = Vec::with_capacity(bytes.len() + 32);
    push_line(&mut forwarded, request.line);
    let mut fields = Fields::default();
    for (count, line) in lines.enumerate() {
        if count == HEADERS_MAX {
            return Err(Fault::TooLong);
        }
        let line = line?;
        let (name, value) = header(line)?;
        if fields.note(&name, value)? == Fate::Kept {
            push_line(&mut forwarded, line);
        }
    }
    forwarded.extend_from_slice(b"Connection: close\r\n\r\n");
    let framing = fields.framing(request.version)?;
    let (host, port) = fields.host(&request)?;
    Ok(Head {
        host,
        port,
        framing,
        forwarded,
    })
}

fn push_line(head: &mut Vec<u8>, line: &[u8]) {
    head.extend_from_slice(line);
    head.extend_from_slice(b"\r\n");
}

/// The lines of a head. A line that holds a bare CR or LF is an error.
struct Lines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Lines<'a> {
    type Item = Result<&'a [u8], Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let line = match end {
            Some(end) => rest.get(..end),
            None => Some(rest),
        };
        self.0 = end.and_then(|end| rest.get(end + 2..));
        let line = line.unwrap_or_default();
        let is_whole = !line.contains(&b'\r') && !line.contains(&b'\n');
        Some(if is_whole { Ok(line) } else { Err(Fault::Http) })
    }
}

struct RequestLine<'a> {
    line: &'a [u8],
    target: &'a str,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

impl<'a> RequestLine<'a> {
    fn parse(line: &'a [u8]) -> Result<Self, Fault> {
        let mut parts = line.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Fault::Http);
        };
        if !is_token(method) || !target.iter().all(u8::is_ascii_graphic) {
            return Err(Fault::Http);
        }
        let version = match version {
            b"HTTP/1.1" => Version::Http11,
            b"HTTP/1.0" => Version::Http10,
            other if other.starts_with(b"HTTP/") => return Err(Fault::HttpVersion),
            _ => return Err(Fault::Http),
        };
        if method == b"CONNECT" {
            return Err(Fault::HttpConnect);
        }
        let target = str::from_utf8(target).map_err(|_| Fault::Http)?;
        Ok(Self {
            line,
            target,
            version,
        })
    }

    /// The host of a target in absolute form; `None` for a path or `*`.
    fn authority(&self) -> Result<Option<&'a str>, Fault> {
        if self.target.starts_with('/') || self.target == "*" {
            return Ok(None);
        }
        let (scheme, rest) = self.target.split_once("://").ok_or(Fault::Http)?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(Fault::HttpTarget);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        Ok(rest.get(..end))
    }
}

/// What the headers say that decides where a request goes and where it ends.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a str>,
    length: Option<u64>,
    is_chunked: bool,
}

#[derive(PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
}

impl<'a> Fields<'a> {
    fn note(&mut self, name: &str, value: &'a [u8]) -> Result<Fate, Fault> {
        match name {
            "host" => {
                let text = str::from_utf8(value).map_err(|_| Fault::HttpHost)?;
                only_once(&mut self.host, text, Fault::HttpHost)?;
            }
            "content-length" => only_once(&mut self.length, length(value)?, Fault::Http)?,
            "transfer-encoding" => {
                let is_known = value.eq_ignore_ascii_case(b"chunked") && !self.is_chunked;
                if !is_known {
                    return Err(Fault::Http);
                }
                self.is_chunked = true;
            }
            name if DROPPED.contains(&name) => return Ok(Fate::Dropped),
            _ => {}
        }
        Ok(Fate::Kept)
    }

    fn framing(&self, version: Version) -> Result<Framing, Fault> {
        match (self.length, self.is_chunked, version) {
            (None, true, Version::Http11) => Ok(Framing::Chunked),
            (_, true, _) => Err(Fault::Http),
            (length, false, _) => Ok(Framing::Length(length.unwrap_or(0))),
        }
    }

    fn host(&self, request: &RequestLine<'_>) -> Result<(Host, Option<u16>), Fault> {
        let header = host_and_port(self.host.ok_or(Fault::HttpHost)?)?;
        if let Some(authority) = request.authority()?
            && host_and_port(authority)? != header
        {
            return Err(Fault::HttpTarget);
        }
        Ok(header)
    }
}

fn only_once<T>(place: &mut Option<T>, value: T, fault: Fault) -> Result<(), Fault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(fault),
    }
}

/// Name in lower case and value without surrounding blanks of one header line.
fn header(line: &[u8]) -> Result<(String, &[u8]), Fault> {
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = colon
        .and_then(|colon| line.split_at_checked(colon))
        .ok_or(Fault::Http)?;
    // A folded line begins with a blank, which is no token either.
    if !is_token(name) {
        return Err(Fault::Http);
    }
    let value = value.get(1..).unwrap_or_default();
    if value
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    {
        return Err(Fault::Http);
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, value.trim_ascii()))
}

fn length(value: &[u8]) -> Result<u64, Fault> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(value).map_err(|_| Fault::Http)?;
    let length = text.parse().map_err(|_| Fault::Http)?;
    if is_number {
        Ok(length)
    } else {
        Err(Fault::Http)
    }
}

fn host_and_port(text: &str) -> Result<(Host, Option<u16>), Fault> {
    let end = match text.rfind(']') {
        Some(bracket) => bracket + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at_checked(end).ok_or(Fault::HttpHost)?;
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| Fault::HttpHost)?)
        }
        _ => return Err(Fault::HttpHost),
    };
    let host = Host::parse(host).map_err(|_| Fault::HttpHost)?;
    Ok((host, port))
}

fn is_token(bytes: &[u8]) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(*byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::host::HostName;

    fn read(text: &str) -> Result<Head, Fault> {
        match read_head(text.as_bytes())? {
            Reading::Complete(head, taken) => {
                assert_eq!(taken, text.len());
                Ok(head)
            }
            Reading::More => panic!("incomplete: {text:?}"),
        }
    }

    #[test]
    fn a_request_is_passed_on_as_the_only_one_of_its_connection() {
        let head = read(
            "GET /a?b HTTP/1.1\r\nHost: Example.com\r\nConnection: keep-alive, Upgrade\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: x\r\nAccept:  */*\r\n\r\n",
        );
        let forwarded = "GET /a?b HTTP/1.1\r\nHost: Example.com\r\nAccept:  */*\r\n\
                         Connection: close\r\n\r\n";
        assert_eq!(
            head,
            Ok(Head {
                host: Host::Name(HostName::parse("example.com").unwrap()),
                port: None,
                framing: Framing::Length(0),
                forwarded: forwarded.into(),
            })
        );
    }

    #[test]
    fn bodies_are_framed_in_exactly_one_way() {
        let framing = |headers: &str| {
            let text = format!("POST / HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n");
            read(&text).map(|head| head.framing)
        };
        assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(Framing::Chunked)
        );
        for bad in [
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: 0x1\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length : 1\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding:\u{b}chunked\r\n",
        ] {
            assert_eq!(framing(bad), Err(Fault::Http), "{bad:?}");
        }
        let old = "POST / HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(old), Err(Fault::Http));
    }

    #[test]
    fn a_request_names_exactly_one_host_eg_4() {
        for (text, fault) in [
            ("GET / HTTP/1.1\r\nAccept: a\r\n\r\n", Fault::HttpHost),
            (
                "GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
                Fault::HttpHost,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n",
                Fault::HttpHost,
            ),
            (
                "GET / HTTP/1.1\r\nHost: user@a.example\r\n\r\n",
                Fault::HttpHost,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a.example:x\r\n\r\n",
                Fault::HttpHost,
            ),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Fault::HttpHost),
            (
                "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Fault::HttpTarget,
            ),
            (
                "GET http://a.example:81/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Fault::HttpTarget,
            ),
            (
                "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Fault::HttpTarget,
            ),
            (
                "GET http://a.example@b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Fault::HttpHost,
            ),
            (
                "CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
                Fault::HttpConnect,
            ),
            ("PRI * HTTP/2.0\r\n\r\n", Fault::HttpVersion),
        ] {
            assert_eq!(read(text), Err(fault), "{text:?}");
        }
        let absolute = "GET http://A.example/x HTTP/1.1\r\nHost: a.EXAMPLE\r\n\r\n";
        assert!(read(absolute).is_ok());
    }

    #[test]
    fn what_servers_could_read_differently_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a.example\r\n folded: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\n\tX: y\r\n\r\n",
            "GET / HTTP/1.1\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\rX: y\r\n\r\n",
            "GET / HTTP/1.1\r\nX: y\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nX: \0\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET / x HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "G(T / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ] {
            assert_eq!(read(text), Err(Fault::Http), "{text:?}");
        }
    }

    #[test]
    fn a_head_is_waited_for_up_to_its_limit() {
        assert_eq!(read_head(b"GET / HTTP/1.1\r\nHost: a"), Ok(Reading::More));
        let endless = "GET / HTTP/1.1\r\nX: ".to_owned() + &"y".repeat(HEAD_BYTES_MAX);
        assert_eq!(read_head(endless.as_bytes()), Err(Fault::TooLong));
        let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
        let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
        assert_eq!(read_head(many.as_bytes()), Err(Fault::TooLong));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_head(&bytes);
            let _ = read_head(&[bytes.as_slice(), b"\r\n\r\n"].concat());
        }

        #[test]
        fn what_is_passed_on_has_one_host_and_one_framing(
            lines in proptest::collection::vec(
                "(Host: [ab]\\.example|Content-Length: [0-9]|Transfer-Encoding: chunked|Connection: [a-z]{1,5}|X: [ -~\\t]{0,9})",
                0..6,
            )
        ) {
            let text = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
            if let Ok(Reading::Complete(head, _)) = read_head(text.as_bytes()) {
                let sent = String::from_utf8(head.forwarded).unwrap();
                prop_assert_eq!(sent.matches("Host: ").count(), 1);
                prop_assert!(sent.ends_with("\r\nConnection: close\r\n\r\n"));
                prop_assert_eq!(sent.matches("\r\nConnection: ").count(), 1);
                let framings = sent.matches("Content-Length").count() + sent.matches("chunked").count();
                prop_assert!(framings <= 1);
            }
        }
    }
}
