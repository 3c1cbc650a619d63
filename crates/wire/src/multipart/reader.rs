//! Reads a multipart body piece by piece.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_core::Stream;
use memchr::memmem;
use tokio::sync::oneshot;

use super::disposition::Disposition;

/// The headers of one part; clients send two short lines.
const PART_HEADER_BYTES_MAX: usize = 16 * 1024;
/// Text before the first delimiter, which no known client sends at all.
const PREAMBLE_BYTES_MAX: usize = 16 * 1024;
/// RFC 2046 allows 70 characters.
const BOUNDARY_BYTES_MAX: usize = 70;

/// What stands before a part's data.
pub(crate) type PartHead = Disposition;

/// The boundary that a `Content-Type` names, when it is `multipart/form-data`.
pub(crate) fn boundary_of(content_type: &[u8]) -> Option<String> {
    let essence_end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    if !content_type[..essence_end]
        .trim_ascii()
        .eq_ignore_ascii_case(b"multipart/form-data")
    {
        return None;
    }
    let parameters = std::str::from_utf8(content_type.get(essence_end + 1..)?).ok()?;
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let fits = (1..=BOUNDARY_BYTES_MAX).contains(&value.len());
        (name.trim().eq_ignore_ascii_case("boundary") && fits).then(|| value.to_owned())
    })
}

/// A multipart body, positioned before a part or inside one.
pub(crate) struct MultipartReader<S> {
    source: S,
    /// What arrived and was not handed out yet.
    buffer: BytesMut,
    /// Finds the line break, two dashes and the boundary.
    delimiter: memmem::Finder<'static>,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> MultipartReader<S> {
    pub(crate) fn new(boundary: &str, source: S) -> Self {
        let delimiter = format!("\r\n--{boundary}");
        // The first delimiter has no line break before it; with this one they are all alike.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        let delimiter = memmem::Finder::new(delimiter.as_bytes()).into_owned();
        Self {
            source,
            buffer,
            delimiter,
        }
    }

    /// Goes to the first part whose field is `name`, reading past at most `others_max` others.
    pub(crate) async fn part_named(
        &mut self,
        name: &str,
        others_max: usize,
    ) -> io::Result<Option<PartHead>> {
        self.skip_data(PREAMBLE_BYTES_MAX).await?;
        for _ in 0..=others_max {
            let Some(head) = self.head().await? else {
                return Ok(None);
            };
            if head.name.as_deref() == Some(name) {
                return Ok(Some(head));
            }
            self.skip_data(PART_HEADER_BYTES_MAX).await?;
        }
        Err(malformed("too many parts before the file"))
    }

    /// Hands out the data of the part whose head was just read. When the stream is dropped the
    /// reader comes back through the second value, so that what is left can be read away.
    pub(crate) fn into_data(self) -> (PartStream<S>, oneshot::Receiver<Self>) {
        let (give_back, returned) = oneshot::channel();
        (
            PartStream {
                reader: Some(self),
                ended: false,
                give_back: Some(give_back),
            },
            returned,
        )
    }

    pub(crate) fn into_source(self) -> S {
        self.source
    }

    /// Reads to the end of the current data, which is then behind.
    async fn skip_data(&mut self, bytes_max: usize) -> io::Result<()> {
        let mut skipped = 0;
        while let Some(piece) = std::future::poll_fn(|cx| self.poll_data(cx)).await? {
            skipped += piece.len();
            if skipped > bytes_max {
                return Err(malformed("too much before the file"));
            }
        }
        Ok(())
    }

    /// Reads what follows a delimiter: the end of the body, or the headers of a part.
    async fn head(&mut self) -> io::Result<Option<PartHead>> {
        self.buffer
            .advance(self.delimiter.needle().len().min(self.buffer.len()));
        while self.buffer.len() < 2 {
            self.fill().await?;
        }
        if self.buffer.starts_with(b"--") {
            return Ok(None);
        }
        if !self.buffer.starts_with(b"\r\n") {
            return Err(malformed("a delimiter is not alone on its line"));
        }
        loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                let block = self.buffer.split_to(end + 4);
                return Ok(Some(disposition_in(&block)));
            }
            if self.buffer.len() > PART_HEADER_BYTES_MAX {
                return Err(malformed("the headers of a part are too long"));
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_fill(cx)).await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.source).poll_next(cx)) {
            Some(Ok(piece)) => {
                self.buffer.extend_from_slice(&piece);
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error)),
            None => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the multipart body ends before its closing delimiter",
            ))),
        }
    }

    /// The next piece of data; nothing once the delimiter is next.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            if let Some(at) = self.delimiter.find(&self.buffer) {
                let piece = (at > 0).then(|| self.buffer.split_to(at).freeze());
                return Poll::Ready(Ok(piece));
            }
            // The end of the buffer may be the beginning of a delimiter.
            let safe = self
                .buffer
                .len()
                .saturating_sub(self.delimiter.needle().len() - 1);
            if safe > 0 {
                return Poll::Ready(Ok(Some(self.buffer.split_to(safe).freeze())));
            }
            ready!(self.poll_fill(cx))?;
        }
    }
}

fn disposition_in(headers: &[u8]) -> Disposition {
    headers
        .split(|&byte| byte == b'\n')
        .find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            let is_it = line[..colon]
                .trim_ascii()
                .eq_ignore_ascii_case(b"content-disposition");
            is_it.then(|| Disposition::parse(line[colon + 1..].trim_ascii()))
        })
        .unwrap_or_default()
}

fn malformed(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// The data of one part.
///
/// It ends only at the part's delimiter: a connection that breaks is an error.
pub(crate) struct PartStream<S> {
    reader: Option<MultipartReader<S>>,
    ended: bool,
    give_back: Option<oneshot::Sender<MultipartReader<S>>>,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for PartStream<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(reader) = this.reader.as_mut().filter(|_| !this.ended) else {
            return Poll::Ready(None);
        };
        let piece = ready!(reader.poll_data(cx)).transpose();
        this.ended = !matches!(piece, Some(Ok(_)));
        Poll::Ready(piece)
    }
}

impl<S> Drop for PartStream<S> {
    fn drop(&mut self) {
        if let (Some(reader), Some(give_back)) = (self.reader.take(), self.give_back.take()) {
            // Nobody waits for it when the request itself is gone.
            let _ = give_back.send(reader);
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod reader_tests;
