//! Where each request on a connection begins and ends, read beside the HTTP library.
//!
//! A request with two lengths means one thing to us and perhaps another to a proxy in front, and
//! what is left over between both is somebody else's request (HS-13). The library settles such a
//! case silently and takes the evidence out of the headers, so it is looked for in the bytes.
//! Nothing is changed and nothing is held here: heads are counted, and the accept loop refuses
//! the one that is ambiguous. What this cannot follow, the library refuses by itself.

use std::{
    future::Future as _,
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

use super::limits::{LINGER_BYTES_MAX, LINGER_TIME};

/// What is read away at a time.
const FAREWELL_BUFFER_BYTES: usize = 16 * 1024;
/// What is kept of a line. Lengths and codings are shorter; one that is not is refused.
const LINE_BYTES_KEPT: usize = 256;

/// What was found out about the requests of one connection, by their number.
#[derive(Debug)]
pub(super) struct Findings {
    /// The first that has no clear end.
    ambiguous: AtomicU64,
    /// The first behind which nothing can be followed.
    last: AtomicU64,
}

impl Findings {
    fn new() -> Self {
        Self {
            ambiguous: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether a request, counted from 0, must be refused.
    pub(super) fn is_ambiguous(&self, request: u64) -> bool {
        self.ambiguous.load(Ordering::Acquire) <= request
    }

    /// Whether the connection must end with a request, unless it goes on as something else.
    pub(super) fn is_last(&self, request: u64) -> bool {
        self.last.load(Ordering::Acquire) <= request
    }
}

/// A connection that is read along.
pub(super) struct Watched<I> {
    io: I,
    reader: Reader,
    farewell: Option<Farewell>,
}

/// Our end has said all it will; the client may still be sending.
struct Farewell {
    timer: Pin<Box<Sleep>>,
    read: u64,
}

impl<I> Watched<I> {
    pub(super) fn new(io: I) -> (Self, Arc<Findings>) {
        let findings = Arc::new(Findings::new());
        let reader = Reader::new(Arc::clone(&findings));
        let farewell = None;
        let watched = Self {
            io,
            reader,
            farewell,
        };
        (watched, findings)
    }

    /// The connection, unwatched.
    pub(super) fn into_inner(self) -> I {
        self.io
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let progress = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Some(new) = buffer.filled().get(before..) {
            self.reader.read(new);
        }
        progress
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Closing a socket with unread bytes in it resets the connection, and a client that is still
    /// sending a body that nobody wanted would see that instead of the answer. So our direction is
    /// closed first, and the rest of such a body read away.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.farewell.is_none() {
            ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
            if !this.reader.is_within_request() {
                return Poll::Ready(Ok(()));
            }
        }
        let farewell = this.farewell.get_or_insert_with(|| Farewell {
            timer: Box::pin(tokio::time::sleep(LINGER_TIME)),
            read: 0,
        });
        ready!(farewell.poll(&mut this.io, cx));
        Poll::Ready(Ok(()))
    }
}

impl Farewell {
    /// Ready when the client has closed its end too, or has sent or taken too much.
    fn poll(&mut self, io: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [MaybeUninit::uninit(); FAREWELL_BUFFER_BYTES];
        while self.read < LINGER_BYTES_MAX && self.timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::uninit(&mut bytes);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => self.read += buffer.filled().len() as u64,
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

/// Where in a request the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    /// A body of known length, or a chunk with the line end behind it.
    Counted {
        left: u64,
        then: Next,
    },
    ChunkSize,
    Trailers,
    /// Nothing is followed any more.
    Lost,
}

/// What follows on counted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Head,
    ChunkSize,
}

/// Follows the requests of one connection.
struct Reader {
    place: Place,
    /// The number of the request whose bytes these are.
    request: u64,
    /// The beginning of the line that is being read.
    line: Vec<u8>,
    /// How long that line is.
    line_bytes: usize,
    /// Whether its last byte so far is a carriage return.
    ends_with_return: bool,
    head: Head,
    findings: Arc<Findings>,
}

/// What a head has said so far.
#[derive(Default)]
struct Head {
    has_begun: bool,
    lengths: usize,
    length: u64,
    is_coded: bool,
    /// It may go on as something else than HTTP.
    changes_protocol: bool,
    is_unclear: bool,
}

impl Reader {
    fn new(findings: Arc<Findings>) -> Self {
        Self {
            place: Place::Head,
            request: 0,
            line: Vec::new(),
            line_bytes: 0,
            ends_with_return: false,
            head: Head::default(),
            findings,
        }
    }

    /// Whether more of a request is to come that has begun, or may be.
    fn is_within_request(&self) -> bool {
        self.place != Place::Head
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = match self.place {
                Place::Lost => return,
                Place::Counted { left, then } => self.count(bytes, left, then),
                Place::Head | Place::ChunkSize | Place::Trailers => self.read_line(bytes),
            };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    fn count(&mut self, bytes: &[u8], left: u64, then: Next) -> usize {
        let used = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(left);
        self.place = match (left - used, then) {
            (0, Next::Head) => self.next_request(),
            (0, Next::ChunkSize) => Place::ChunkSize,
            (left, then) => Place::Counted { left, then },
        };
        usize::try_from(used).unwrap_or(bytes.len())
    }

    /// Reads to the end of a line, if that is there already.
    fn read_line(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let room = LINE_BYTES_KEPT.saturating_sub(self.line.len());
        self.line
            .extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        self.line_bytes += part.len();
        if let Some(last) = part.last() {
            self.ends_with_return = *last == b'\r';
        }
        let Some(end) = end else {
            return bytes.len();
        };
        let line = std::mem::take(&mut self.line);
        let is_whole = self.line_bytes == line.len();
        self.line_bytes = 0;
        let is_terminated = std::mem::take(&mut self.ends_with_return);
        self.place = match is_terminated {
            true => self.end_line(line.strip_suffix(b"\r").unwrap_or(&line), is_whole),
            false => self.end_line_early(&line, is_whole),
        };
        // The memory is for the next line.
        self.line = line;
        self.line.clear();
        end + 1
    }

    /// A line feed alone ends a line for some and not for others (HS-13). In a head that makes the
    /// whole request unclear. What belongs to a body is refused by the library, and nothing behind
    /// it is read.
    fn end_line_early(&mut self, line: &[u8], is_whole: bool) -> Place {
        match self.place {
            Place::Head => {
                self.head.is_unclear = true;
                let is_end = line.is_empty() && is_whole;
                match is_end {
                    true => self.end_head(),
                    false => self.end_line(line, is_whole),
                }
            }
            _ => self.lose_track(),
        }
    }

    /// What comes behind a line.
    fn end_line(&mut self, line: &[u8], is_whole: bool) -> Place {
        match self.place {
            Place::Head if !line.is_empty() || !is_whole => {
                self.head.take(line, is_whole);
                Place::Head
            }
            // Empty lines before a request are allowed.
            Place::Head if !self.head.has_begun => Place::Head,
            Place::Head => self.end_head(),
            Place::ChunkSize => match chunk_size(line) {
                Some(0) => Place::Trailers,
                Some(size) => Place::Counted {
                    // With the line end behind it.
                    left: size.saturating_add(2),
                    then: Next::ChunkSize,
                },
                None => self.lose_track(),
            },
            Place::Trailers if line.is_empty() && is_whole => self.next_request(),
            place => place,
        }
    }

    fn end_head(&mut self) -> Place {
        let head = std::mem::take(&mut self.head);
        if head.is_unclear || head.lengths > 1 || (head.lengths > 0 && head.is_coded) {
            self.findings
                .ambiguous
                .fetch_min(self.request, Ordering::AcqRel);
            return Place::Lost;
        }
        if head.changes_protocol {
            return self.lose_track();
        }
        match (head.is_coded, head.length) {
            (true, _) => Place::ChunkSize,
            (false, 0) => self.next_request(),
            (false, left) => Place::Counted {
                left,
                then: Next::Head,
            },
        }
    }

    fn next_request(&mut self) -> Place {
        self.request += 1;
        Place::Head
    }

    fn lose_track(&self) -> Place {
        self.findings.last.fetch_min(self.request, Ordering::AcqRel);
        Place::Lost
    }
}

impl Head {
    fn take(&mut self, line: &[u8], is_whole: bool) {
        if !self.has_begun {
            self.has_begun = true;
            self.changes_protocol |= line.starts_with(b"CONNECT ");
            return;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let value = parts.next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            let digits = std::str::from_utf8(value).unwrap_or_default();
            let length = digits.parse().ok().filter(|_| is_whole);
            self.is_unclear |= length.is_none();
            self.length = length.unwrap_or_default();
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // We decode nothing else, and a proxy in front may see another body, or another end of it.
            let is_known = is_whole && value.eq_ignore_ascii_case(b"chunked");
            self.is_unclear |= self.is_coded || !is_known;
            self.is_coded = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.changes_protocol = true;
        }
    }
}

/// The number at the beginning of a chunk's line.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = line.get(..digits.count())?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
