//! Files as bytes, from the host's end. What the executor says of them is checked, not believed.

mod changes;
mod content;

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;

use self::{
    changes::Changes,
    content::{Exactly, SentBody},
};
use super::{
    ClientError, DOCUMENT_BYTES_MAX, ExecutorClient, RequestBody,
    pool::Carrier,
    read_whole,
    transfer::{BodyStream, STALL, percent_encoded, refusal_in, stalled},
};
use crate::{
    ByteStream,
    files::{
        Body, ChangeStream, Depth, Digest, DirectoryRequest, EntryPage, FileContent, FileStatus,
        Links, ListRequest, Parents, ReadRequest, RemoveRequest, RenameRequest, StatRequest,
        WatchRequest, WriteRequest,
    },
    server::files_paths as paths,
};

/// How long work on one file may take that moves no content: a digest reads all of it, and a
/// tree may be large.
const WORK_TIMEOUT: Duration = Duration::from_secs(120);

impl ExecutorClient {
    /// What is at a path.
    ///
    /// # Errors
    /// [`ClientError::File`] with the reason, otherwise whatever kept the answer from coming. The
    /// same holds for all work on files.
    pub async fn stat_file(&self, asked: &StatRequest) -> Result<FileStatus, ClientError> {
        let mut target = Target::new(paths::STATUS, &asked.path);
        if asked.links == Links::Keep {
            target.add("links", "keep");
        }
        target.add_digest(asked.digest);
        let answer = self
            .ask(self.request(Method::GET, &target.text, None))
            .await?;
        status_in(&answer)
    }

    /// Opens a file and returns its bytes as they arrive. They are complete when the stream ends
    /// without an error.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn read_file(&self, asked: &ReadRequest) -> Result<FileContent, ClientError> {
        let mut target = Target::new(paths::CONTENT, &asked.path);
        if let Some(range) = asked.range {
            target.add("range", &range.to_words());
        }
        target.add_digest(asked.digest);
        let request = self.request(Method::GET, &target.text, None);
        let (response, lease) =
            tokio::time::timeout(WORK_TIMEOUT, self.pool.send(request, Carrier::Task))
                .await
                .unwrap_or(Err(timeout()))?;
        if response.status() != StatusCode::OK {
            return Err(refusal_in(response, lease).await);
        }
        let described = response.headers().get(paths::STATUS_HEADER);
        let described = described.and_then(|text| serde_json::from_slice(text.as_bytes()).ok());
        let described: Value = described.unwrap_or_default();
        let status = described.get("status").and_then(FileStatus::from_json);
        let start = described.get("start").and_then(Value::as_u64);
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|text| text.to_str().ok()?.parse().ok());
        let (Some(status), Some(start), Some(length)) = (status, start, length) else {
            return Err(nonsense("a file without a description"));
        };
        let body = BodyStream::new(response.into_body(), lease, STALL);
        Ok(FileContent {
            status,
            start,
            length,
            stream: Box::pin(Exactly::new(Box::pin(body), length)),
        })
    }

    /// Puts a stream into a file, and returns what is there then.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file). When the stream fails, the file stays as it was.
    pub async fn write_file(
        &self,
        asked: &WriteRequest,
        content: ByteStream,
    ) -> Result<FileStatus, ClientError> {
        let mut target = Target::new(paths::CONTENT, &asked.path);
        if let Some(mode) = asked.mode {
            target.add("mode", &format!("{mode:o}"));
        }
        if asked.parents == Parents::Make {
            target.add("parents", "make");
        }
        if let Some(expected) = &asked.expected {
            target.add("expected", &expected.to_words());
        }
        let body = SentBody::new(content);
        let (progress, failure) = (body.progress(), body.failure());
        let content_type = Some("application/octet-stream".to_owned());
        let body = body.boxed_unsync();
        let request = self.request_with(Method::PUT, &target.text, content_type, body);
        let exchange = async {
            let (response, lease) = self.pool.send(request, Carrier::Task).await?;
            read_whole(response, lease, DOCUMENT_BYTES_MAX).await
        };
        let answer = tokio::select! {
            answer = exchange => answer,
            () = stalled(&progress) => Err(ClientError::Timeout { waited: STALL }),
        };
        // The request only knows that it broke; the reason is on our side.
        if let Some(error) = SentBody::take(&failure) {
            return Err(ClientError::File(error));
        }
        status_in(&parsed(&answer?)?)
    }

    /// A page of a directory.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn list_directory(&self, asked: &ListRequest) -> Result<EntryPage, ClientError> {
        let mut target = Target::new(paths::ENTRIES, &asked.path);
        if let Some(after) = &asked.after {
            target.add("after", after);
        }
        target.add("limit", &asked.limit.to_string());
        let answer = self
            .ask(self.request(Method::GET, &target.text, None))
            .await?;
        EntryPage::from_json(&answer).ok_or_else(|| nonsense("a page of a directory"))
    }

    /// Removes a file, a link or a directory.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn remove_file(&self, asked: &RemoveRequest) -> Result<(), ClientError> {
        let mut target = Target::new(paths::REMOVAL, &asked.path);
        target.add_depth(asked.depth);
        let request = self.request(Method::DELETE, &target.text, None);
        self.ask(request).await.map(drop)
    }

    /// Gives something another name.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn rename_file(&self, asked: &RenameRequest) -> Result<(), ClientError> {
        let body = Some(asked.to_json().to_string());
        let request = self.request(Method::POST, paths::RENAMES, body);
        self.ask(request).await.map(drop)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn make_directory(
        &self,
        asked: &DirectoryRequest,
    ) -> Result<FileStatus, ClientError> {
        let body = Some(asked.to_json().to_string());
        let request = self.request(Method::POST, paths::DIRECTORIES, body);
        status_in(&self.ask(request).await?)
    }

    /// Tells of changes in a directory until the stream is dropped.
    ///
    /// # Errors
    /// As [`stat_file`](Self::stat_file).
    pub async fn watch_files(&self, asked: &WatchRequest) -> Result<ChangeStream, ClientError> {
        let mut target = Target::new(paths::WATCH, &asked.path);
        target.add_depth(asked.depth);
        let request = self.request(Method::GET, &target.text, None);
        let (response, lease) =
            tokio::time::timeout(WORK_TIMEOUT, self.pool.send(request, Carrier::Task))
                .await
                .unwrap_or(Err(timeout()))?;
        if response.status() != StatusCode::OK {
            return Err(refusal_in(response, lease).await);
        }
        // Three signs of life may be missed.
        let patience = paths::SIGN_OF_LIFE * 4;
        let body = BodyStream::new(response.into_body(), lease, patience);
        Ok(Box::pin(Changes::new(Box::pin(body))))
    }

    async fn ask(&self, request: Request<RequestBody>) -> Result<Value, ClientError> {
        let document = self.document(request, WORK_TIMEOUT, DOCUMENT_BYTES_MAX);
        parsed(&document.await?)
    }
}

/// A path with parameters.
struct Target {
    text: String,
}

impl Target {
    fn new(route: &str, path: &str) -> Self {
        Self {
            text: format!("{route}?path={}", percent_encoded(path)),
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        self.text
            .push_str(&format!("&{name}={}", percent_encoded(value)));
    }

    fn add_digest(&mut self, digest: Digest) {
        if digest == Digest::Sha256 {
            self.add("digest", "sha256");
        }
    }

    fn add_depth(&mut self, depth: Depth) {
        self.add(
            "depth",
            match depth {
                Depth::One => "one",
                Depth::Tree => "tree",
            },
        );
    }
}

fn parsed(document: &[u8]) -> Result<Value, ClientError> {
    serde_json::from_slice(document).map_err(|_| nonsense("no JSON"))
}

fn status_in(answer: &Value) -> Result<FileStatus, ClientError> {
    FileStatus::from_json(answer).ok_or_else(|| nonsense("no description of a file"))
}

fn nonsense(what: &str) -> ClientError {
    ClientError::InvalidAnswer {
        problem: what.to_owned(),
    }
}

fn timeout() -> ClientError {
    let waited = WORK_TIMEOUT;
    ClientError::Timeout { waited }
}
