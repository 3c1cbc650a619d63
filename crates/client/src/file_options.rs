//! Files of a session with every option of the API; `files` has what is asked for most.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_core::Stream;
use futures_util::StreamExt as _;
use reqwest::{Body, Method, RequestBuilder, Response, header};
use serde::Serialize;
use zareba_api::{
    FileChange, FileStatus, Operation, ReadFileQuery, RemoveFileQuery, StatusQuery, WatchQuery,
    WriteFileQuery, operations::files,
};
use zareba_protocol::SessionId;

use crate::{
    ByteStream, Client, ClientError,
    ask::parse,
    events::messages,
    files::{LONG, content_of, status_of},
};

/// The first event of a watch: from now on changes are told.
const READY: &str = "ready";

/// A file, or a part of it, on its way.
pub struct FileContent {
    /// Its version, or `sha256:` and its hash when that was asked for.
    pub tag: Option<String>,
    /// Bytes in the whole file.
    pub size: u64,
    /// Where these bytes begin.
    pub start: u64,
    /// How many there are.
    pub length: u64,
    /// The bytes.
    pub stream: ByteStream,
}

impl fmt::Debug for FileContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FileContent")
            .field("tag", &self.tag)
            .field("size", &self.size)
            .field("start", &self.start)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// What a file must be for a write to go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCondition {
    /// Not there.
    Absent,
    /// With this tag: a version, or `sha256:` and a hash.
    Tag(String),
}

/// Changes of a directory as they happen. Dropping it ends the watch.
pub type FileChanges = Pin<Box<dyn Stream<Item = Result<FileChange, ClientError>> + Send>>;

impl Client {
    /// What is at a path.
    ///
    /// # Errors
    /// When there is nothing, and whatever kept the answer from coming.
    pub async fn stat_file(
        &self,
        session: &SessionId,
        query: &StatusQuery,
    ) -> Result<FileStatus, ClientError> {
        let request = self.about_file(Method::GET, &files::STATUS, session, query)?;
        self.within(async { status_of(self, self.send(request).await?).await })
            .await
    }

    /// Opens a file, or the part of it that `range` names as HTTP does: `0-99`, `100-`, `-10`.
    ///
    /// # Errors
    /// When it is not there or no file, and whatever kept the answer from coming.
    pub async fn open_file(
        &self,
        session: &SessionId,
        query: &ReadFileQuery,
        range: Option<&str>,
    ) -> Result<FileContent, ClientError> {
        let url = self.url(files::READ.path, &[session.as_str()])?;
        let mut request = self.streamed(Method::GET, url).query(query);
        if let Some(range) = range {
            request = request.header(header::RANGE, format!("bytes={range}"));
        }
        let response = self.within(self.send(request)).await?;
        let tag = header_text(&response, header::ETAG).map(unquoted);
        let (start, length, size) = extent(&response).ok_or_else(|| ClientError::Nonsense {
            problem: "a file comes without its length".to_owned(),
        })?;
        Ok(FileContent {
            tag,
            size,
            start,
            length,
            stream: content_of(response),
        })
    }

    /// Puts a stream into a file if the file is as expected.
    ///
    /// # Errors
    /// When it is not, and as [`write_file`](Self::write_file).
    pub async fn replace_file(
        &self,
        session: &SessionId,
        query: &WriteFileQuery,
        condition: Option<&FileCondition>,
        content: ByteStream,
    ) -> Result<FileStatus, ClientError> {
        let mut request = self
            .about_file(Method::PUT, &files::WRITE, session, query)?
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(Body::wrap_stream(content));
        request = match condition {
            None => request,
            Some(FileCondition::Absent) => request.header(header::IF_NONE_MATCH, "*"),
            Some(FileCondition::Tag(tag)) => request.header(header::IF_MATCH, format!("\"{tag}\"")),
        };
        status_of(self, self.send(request).await?).await
    }

    /// Removes a file, a link, or a directory as far as that was asked for.
    ///
    /// # Errors
    /// When it is not there, and whatever kept it from being removed.
    pub async fn delete_file(
        &self,
        session: &SessionId,
        query: &RemoveFileQuery,
    ) -> Result<(), ClientError> {
        let request = self.about_file(Method::DELETE, &files::REMOVE, session, query)?;
        self.within(self.send(request)).await.map(drop)
    }

    /// Tells of changes in a directory, which is watched by the time this returns.
    ///
    /// # Errors
    /// When there is no such directory, and whatever kept the answer from coming. The stream ends
    /// with an error when the connection breaks; what was missed then is not told again.
    pub async fn watch_files(
        &self,
        session: &SessionId,
        query: &WatchQuery,
    ) -> Result<FileChanges, ClientError> {
        let url = self.url(files::WATCH.path, &[session.as_str()])?;
        let request = self.streamed(Method::GET, url).query(query);
        let request = request.header(header::ACCEPT, "text/event-stream");
        let pending = Arc::<AtomicUsize>::default();
        let begun = async {
            let response = self.send(request).await?;
            let mut changes = messages(self, response, Arc::clone(&pending));
            match changes.next().await {
                Some(first) if first.as_ref().is_ok_and(|first| first.event == READY) => {
                    Ok(changes)
                }
                Some(Err(error)) => Err(error),
                Some(Ok(_)) | None => Err(ClientError::Nonsense {
                    problem: "a watch did not begin as such".to_owned(),
                }),
            }
        };
        let changes = self.within(begun).await?;
        Ok(Box::pin(changes.map(move |change| {
            pending.store(0, Ordering::Relaxed);
            parse(change?.data.as_bytes())
        })))
    }

    fn about_file(
        &self,
        method: Method,
        operation: &Operation,
        session: &SessionId,
        query: &impl Serialize,
    ) -> Result<RequestBuilder, ClientError> {
        let url = self.url(operation.path, &[session.as_str()])?;
        Ok(self.keyed(method, url).query(query))
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let waited: Duration = LONG;
        let done = tokio::time::timeout(waited, work).await;
        done.unwrap_or(Err(ClientError::Timeout { waited }))
    }
}

/// Where the bytes of an answer begin, how many there are, and how many the file has.
fn extent(response: &Response) -> Option<(u64, u64, u64)> {
    let length = response.content_length()?;
    match header_text(response, header::CONTENT_RANGE) {
        None => Some((0, length, length)),
        Some(range) => part(range).map(|(start, size)| (start, length, size)),
    }
}

/// The first byte and the size of `bytes 2-4/10`.
fn part(range: &str) -> Option<(u64, u64)> {
    let (part, size) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = part.split_once('-')?;
    Some((start.parse().ok()?, size.parse().ok()?))
}

fn header_text(response: &Response, name: header::HeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}

fn unquoted(tag: &str) -> String {
    let inner = tag
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'));
    inner.unwrap_or(tag).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_their_header() {
        assert_eq!(part("bytes 2-4/10"), Some((2, 10)));
        for nonsense in ["", "bytes 2-4", "bytes */10", "bytes 2-4/*", "2-4/10"] {
            assert_eq!(part(nonsense), None, "{nonsense}");
        }
        assert_eq!(unquoted("\"1-2\""), "1-2");
    }
}
