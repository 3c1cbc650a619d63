//! Files of a session, as bytes. Content goes through as it comes and is never held whole.

use std::{io, pin::Pin, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::TryStreamExt as _;
use reqwest::{Body, Method, Response, Url};
use zareba_api::{
    ArchiveFormat, CreateDirectory, FilePage, FileStatus, ListFilesQuery, Operation, RenameFile,
    operations::files,
};
use zareba_protocol::SessionId;

use crate::{
    Client, ClientError,
    ask::{Ask, Repeat, parse},
    transport::read_whole,
};

/// Bytes that arrive or leave piece by piece.
pub type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// How long work on a file may take, beside moving its bytes.
pub(crate) const LONG: Duration = Duration::from_secs(300);
/// What is told of a file that was written.
const STATUS_BYTES_MAX: usize = 64 * 1024;

impl Client {
    /// A page of a directory.
    ///
    /// # Errors
    /// When there is none, and whatever kept the answer from coming.
    pub async fn list_files(
        &self,
        session: &SessionId,
        page: &ListFilesQuery,
    ) -> Result<FilePage, ClientError> {
        let mut ask = Ask::new(self, &files::LIST, &[session.as_str()])?.within(LONG);
        for (name, value) in [("path", &page.path), ("after", &page.after)] {
            if let Some(value) = value {
                ask = ask.query(name, value);
            }
        }
        if let Some(limit) = page.limit {
            ask = ask.query("limit", &limit.to_string());
        }
        self.ask_for(ask).await
    }

    /// What is at a path, behind links.
    ///
    /// # Errors
    /// When there is nothing, and whatever kept the answer from coming.
    pub async fn file_status(
        &self,
        session: &SessionId,
        path: &str,
    ) -> Result<FileStatus, ClientError> {
        let ask = Ask::new(self, &files::STATUS, &[session.as_str()])?;
        self.ask_for(ask.query("path", path).within(LONG)).await
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// When it is not there or no file, and whatever kept the answer from coming.
    pub async fn read_file(
        &self,
        session: &SessionId,
        path: &str,
    ) -> Result<ByteStream, ClientError> {
        let url = self.place_of(&files::READ, session, &[("path", path)])?;
        self.fetch(url).await
    }

    /// Puts a stream into a file, and makes the directories above it. The file is the old one or
    /// the new one at any time.
    ///
    /// # Errors
    /// Whatever kept it from being written; what breaks the stream counts as a broken connection,
    /// after which nothing is kept.
    pub async fn write_file(
        &self,
        session: &SessionId,
        path: &str,
        content: ByteStream,
    ) -> Result<FileStatus, ClientError> {
        let query = [("path", path), ("parents", "true")];
        let url = self.place_of(&files::WRITE, session, &query)?;
        status_of(self, self.store(url, content).await?).await
    }

    /// Removes a file, a link, or a directory with all that is in it.
    ///
    /// # Errors
    /// When it is not there, and whatever kept it from being removed.
    pub async fn remove_file(&self, session: &SessionId, path: &str) -> Result<(), ClientError> {
        let ask = Ask::new(self, &files::REMOVE, &[session.as_str()])?
            .query("path", path)
            .query("recursive", "true")
            .within(LONG);
        self.ask(ask).await.map(drop)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// Whatever kept it from being made.
    pub async fn make_directory(
        &self,
        session: &SessionId,
        new: &CreateDirectory,
    ) -> Result<FileStatus, ClientError> {
        let repeat = if new.parents {
            Repeat::Always
        } else {
            Repeat::Unsent
        };
        let ask = Ask::new(self, &files::MAKE_DIRECTORY, &[session.as_str()])?.json(new)?;
        self.ask_for(ask.repeated(repeat).within(LONG)).await
    }

    /// Gives something another name.
    ///
    /// # Errors
    /// Whatever kept it from having it.
    pub async fn rename_file(
        &self,
        session: &SessionId,
        names: &RenameFile,
    ) -> Result<(), ClientError> {
        let ask = Ask::new(self, &files::RENAME, &[session.as_str()])?.json(names)?;
        self.ask(ask.within(LONG)).await.map(drop)
    }

    /// A file or a directory as an archive. It is complete when the stream ends without an error.
    ///
    /// # Errors
    /// Whatever kept it from being packed.
    pub async fn pack_files(
        &self,
        session: &SessionId,
        path: &str,
        format: ArchiveFormat,
    ) -> Result<ByteStream, ClientError> {
        let query = [("path", path), ("format", word_of(format))];
        let url = self.place_of(&files::PACK, session, &query)?;
        self.fetch(url).await
    }

    /// Unpacks an archive into a directory: all of it or nothing.
    ///
    /// # Errors
    /// Whatever kept it from being unpacked.
    pub async fn unpack_files(
        &self,
        session: &SessionId,
        path: &str,
        format: ArchiveFormat,
        archive: ByteStream,
    ) -> Result<(), ClientError> {
        let query = [("path", path), ("format", word_of(format))];
        let url = self.place_of(&files::UNPACK, session, &query)?;
        self.store(url, archive).await.map(drop)
    }

    fn place_of(
        &self,
        operation: &Operation,
        session: &SessionId,
        query: &[(&str, &str)],
    ) -> Result<Url, ClientError> {
        let mut url = self.url(operation.path, &[session.as_str()])?;
        url.query_pairs_mut().extend_pairs(query);
        Ok(url)
    }

    async fn fetch(&self, url: Url) -> Result<ByteStream, ClientError> {
        let response = self.send(self.streamed(Method::GET, url)).await?;
        Ok(content_of(response))
    }

    async fn store(&self, url: Url, content: ByteStream) -> Result<Response, ClientError> {
        let request = self
            .keyed(Method::PUT, url)
            .header("content-type", "application/octet-stream")
            .body(Body::wrap_stream(content));
        self.send(request).await
    }
}

/// The body of an answer, as it comes.
pub(crate) fn content_of(response: Response) -> ByteStream {
    Box::pin(response.bytes_stream().map_err(io::Error::other))
}

/// What an answer tells of a file.
pub(crate) async fn status_of(
    client: &Client,
    response: Response,
) -> Result<FileStatus, ClientError> {
    let document = read_whole(response, STATUS_BYTES_MAX).await;
    let document = document.map_err(|error| ClientError::unread(client.place(), error))?;
    parse(&document)
}

const fn word_of(format: ArchiveFormat) -> &'static str {
    match format {
        ArchiveFormat::Tar => "tar",
        ArchiveFormat::Zip => "zip",
    }
}
