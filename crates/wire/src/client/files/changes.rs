//! Lines of JSON as changes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use futures_core::Stream;

use crate::{ByteStream, files::FileChange};

/// A line at the most: two of the longest paths there are, with every byte escaped.
const LINE_BYTES_MAX: usize = 128 * 1024;

/// The changes that a watch tells of. After an error there is nothing more.
pub(super) struct Changes {
    body: Option<ByteStream>,
    unread: BytesMut,
}

impl Changes {
    pub(super) fn new(body: ByteStream) -> Self {
        Self {
            body: Some(body),
            unread: BytesMut::new(),
        }
    }

    /// The next change among what was read. Lines without content are signs of life.
    fn take(&mut self) -> Option<io::Result<FileChange>> {
        while let Some(end) = memchr::memchr(b'\n', &self.unread) {
            let line = self.unread.split_to(end);
            self.unread.advance(1);
            if line.is_empty() {
                continue;
            }
            let change = serde_json::from_slice(&line).ok();
            let change = change.as_ref().and_then(FileChange::from_json);
            return Some(change.ok_or_else(|| nonsense("a change that is none")));
        }
        let is_endless = self.unread.len() > LINE_BYTES_MAX;
        is_endless.then(|| Err(nonsense("a line without end")))
    }
}

fn nonsense(what: &str) -> io::Error {
    let text = format!("the executor's answer makes no sense: {what}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Stream for Changes {
    type Item = io::Result<FileChange>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let failed = loop {
            match this.take() {
                Some(Ok(change)) => return Poll::Ready(Some(Ok(change))),
                Some(Err(error)) => break Some(error),
                None => {}
            }
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            match ready!(body.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => this.unread.extend_from_slice(&piece),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        this.body = None;
        this.unread.clear();
        Poll::Ready(failed.map(Err))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};

    use super::*;
    use crate::files::FileKind;

    fn changes(pieces: &[&[u8]]) -> Changes {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        Changes::new(Box::pin(stream::iter(pieces)))
    }

    #[tokio::test]
    async fn changes_are_found_in_pieces_of_any_size() {
        let created = FileChange::Created {
            path: "a".to_owned(),
            kind: FileKind::File,
        };
        let text = format!(
            "\n{}\n\n{}\n",
            created.to_json(),
            FileChange::Gone.to_json()
        );
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let told: Vec<_> = changes(&pieces).map(Result::unwrap).collect().await;
        assert_eq!(told, [created, FileChange::Gone]);
    }

    /// G-1.
    #[tokio::test]
    async fn an_executor_that_talks_nonsense_is_not_listened_to() {
        let endless = vec![b'a'; LINE_BYTES_MAX + 1];
        for pieces in [&[b"{}\n".as_slice()] as &[&[u8]], &[b"\xff\n"], &[&endless]] {
            let mut changes = changes(pieces);
            let error = changes.next().await.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(changes.next().await.is_none());
        }
    }
}
