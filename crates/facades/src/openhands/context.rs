//! The form that asks for a build: a context as one file, and names.
//!
//! The stock client sends the archive as base64 text, as it is; an archive that is sent as such is
//! taken too.

use std::{
    fs::File,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{body::Bytes, extract::Request};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::Stream;
use http::{StatusCode, header};
use multer::{Constraints, Field, Multipart, SizeLimit};
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};
use zareba_wire::serving::TimedBody;

use super::{RemoteBuild, answer::Refusal};

/// The largest form; the stock client's has some tens of megabytes.
const FORM_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The longest name of an image, and how many there may be.
const NAME_BYTES_MAX: u64 = 512;
const NAMES_MAX: usize = 16;
/// What a compressed file begins with; no base64 text does.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a form. The archive goes to `scratch`.
pub(super) async fn read(
    request: Request,
    stall: std::time::Duration,
    scratch: File,
) -> Result<RemoteBuild, Refusal> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|it| it.to_str().ok());
    let boundary = content_type.and_then(|it| multer::parse_boundary(it).ok());
    let boundary = boundary.ok_or_else(|| {
        let detail = "a build is asked for by a form (`multipart/form-data`)";
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    })?;
    let limits = SizeLimit::new()
        .whole_stream(FORM_BYTES_MAX)
        .per_field(NAME_BYTES_MAX)
        .for_field("context", FORM_BYTES_MAX);
    let limits = Constraints::new().size_limit(limits);
    let body = OneAtATime::new(TimedBody::new(request.into_body(), stall));
    let mut form = Multipart::with_constraints(body, boundary, limits);
    let mut received = Received::new(scratch);
    while let Some(field) = form.next_field().await.map_err(refused)? {
        received.field(field).await?;
    }
    received.finish().await
}

struct Received {
    archive: tokio::fs::File,
    decoder: Decoder,
    has_archive: bool,
    target: Option<String>,
    others: Vec<String>,
}

impl Received {
    fn new(scratch: File) -> Self {
        Self {
            archive: tokio::fs::File::from_std(scratch),
            decoder: Decoder::default(),
            has_archive: false,
            target: None,
            others: Vec::new(),
        }
    }

    async fn field(&mut self, mut field: Field<'_>) -> Result<(), Refusal> {
        match field.name() {
            Some("context") if !self.has_archive => {
                self.has_archive = true;
                while let Some(piece) = field.chunk().await.map_err(refused)? {
                    let decoded = self.decoder.take(&piece)?;
                    self.archive.write_all(&decoded).await.map_err(unkept)?;
                }
            }
            Some("target_image") => self.target = Some(field.text().await.map_err(refused)?),
            Some("tags") if self.others.len() < NAMES_MAX => {
                self.others.push(field.text().await.map_err(refused)?);
            }
            _ => {
                let detail = "the form has a field that is not known, or too many of one";
                return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<RemoteBuild, Refusal> {
        let rest = self.decoder.finish()?;
        self.archive.write_all(&rest).await.map_err(unkept)?;
        self.archive.flush().await.map_err(unkept)?;
        self.archive.rewind().await.map_err(unkept)?;
        let (Some(target), true) = (self.target, self.has_archive) else {
            let detail = "the form needs the fields `context` and `target_image`";
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        };
        let mut names = vec![target];
        names.append(&mut self.others);
        let context = self.archive.into_std().await;
        Ok(RemoteBuild { context, names })
    }
}

/// Makes an archive of a text that arrives in pieces, or passes one through.
#[derive(Debug, Default)]
struct Decoder {
    /// Letters that do not make up a whole group yet.
    rest: Vec<u8>,
    form: Option<Form>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Bytes,
}

impl Decoder {
    fn take(&mut self, piece: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.rest.extend_from_slice(piece);
        if self.form.is_none() && self.rest.len() >= GZIP.len() {
            let is_archive = self.rest.starts_with(&GZIP);
            self.form = Some(if is_archive { Form::Bytes } else { Form::Text });
        }
        match self.form {
            None => Ok(Vec::new()),
            Some(Form::Bytes) => Ok(std::mem::take(&mut self.rest)),
            Some(Form::Text) => {
                self.rest.retain(|byte| !byte.is_ascii_whitespace());
                let whole = self.rest.len() / 4 * 4;
                let decoded = decode(&self.rest[..whole])?;
                self.rest.drain(..whole);
                Ok(decoded)
            }
        }
    }

    fn finish(&mut self) -> Result<Vec<u8>, Refusal> {
        decode(&std::mem::take(&mut self.rest))
    }
}

fn decode(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    BASE64_STANDARD.decode(text).map_err(|error| {
        let detail = format!("`context` is neither base64 text nor a compressed archive: {error}");
        Refusal::invalid(detail)
    })
}

/// A reader that takes all there is at once would keep all of it in memory.
struct OneAtATime<S> {
    stream: S,
    has_given: bool,
}

impl<S> OneAtATime<S> {
    fn new(stream: S) -> Self {
        let has_given = false;
        Self { stream, has_given }
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for OneAtATime<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.has_given) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.stream).poll_next(context);
        self.has_given = matches!(polled, Poll::Ready(Some(_)));
        polled
    }
}

fn refused(error: multer::Error) -> Refusal {
    let status = match error {
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        _ => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, format!("the form cannot be read: {error}"))
}

fn unkept(error: io::Error) -> Refusal {
    tracing::warn!(%error, "a build context cannot be kept");
    let detail = "the build context cannot be kept; is the disk full?";
    Refusal::new(StatusCode::INSUFFICIENT_STORAGE, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8], size: usize) -> Result<Vec<u8>, Refusal> {
        let mut decoder = Decoder::default();
        let mut bytes = Vec::new();
        for piece in text.chunks(size) {
            bytes.extend(decoder.take(piece)?);
        }
        bytes.extend(decoder.finish()?);
        Ok(bytes)
    }

    #[test]
    fn a_text_is_decoded_however_it_is_cut() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = BASE64_STANDARD.encode(&bytes);
        let lines = text.as_bytes().chunks(76).collect::<Vec<_>>().join(&b'\n');
        for size in 1..90 {
            assert_eq!(decoded(text.as_bytes(), size).unwrap(), bytes, "{size}");
            assert_eq!(decoded(&lines, size).unwrap(), bytes, "{size}");
        }
        assert!(decoded(&text.as_bytes()[..text.len() - 1], 7).is_err());
        assert!(decoded(b"no base64!", 3).is_err());
    }

    #[test]
    fn an_archive_passes_through() {
        let bytes = [0x1f, 0x8b, 8, 0, b'=', b'\n', 255];
        for size in 1..8 {
            assert_eq!(decoded(&bytes, size).unwrap(), bytes, "{size}");
        }
        assert_eq!(decoded(&[], 1).unwrap(), [0; 0]);
    }
}
