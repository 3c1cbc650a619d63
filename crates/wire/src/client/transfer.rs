//! Moving files to and from an executor, without holding them.

use std::{
    io,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_core::Stream;
use http::{Method, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{io::AsyncRead, time::Sleep};

use super::{
    ClientError, DOCUMENT_BYTES_MAX, ExecutorClient,
    pool::{Carrier, Lease},
    read_whole, text_of,
};
use crate::{
    ArchiveFormat, ByteStream, Download, Upload, UploadRoom, UploadTreatment, multipart::FileForm,
};

/// How long a transfer may make no progress; also how long an archive may take to unpack.
pub(super) const STALL: Duration = Duration::from_secs(300);

impl ExecutorClient {
    /// Sends a file, or an archive to be unpacked, while it is read from `source`.
    ///
    /// # Errors
    /// Whatever kept the executor from storing it; reading `source` counts as a broken
    /// connection, after which the executor keeps nothing.
    pub async fn upload(
        &self,
        upload: &Upload,
        source: impl AsyncRead + Unpin + Send + 'static,
    ) -> Result<(), ClientError> {
        let destination = percent_encoded(text_of(&upload.destination)?);
        let recursive = match upload.treatment {
            UploadTreatment::Store => "false",
            UploadTreatment::Unpack => "true",
        };
        let mut target = format!("/upload_file?destination={destination}&recursive={recursive}");
        if let Some(UploadRoom { bytes, files }) = upload.room {
            target.push_str(&format!("&room_bytes={bytes}&room_files={files}"));
        }
        let (form, content_type) = FileForm::new(&upload.file_name, source).ok_or_else(|| {
            ClientError::InvalidRequest {
                problem: "the file name has control characters".into(),
            }
        })?;
        let progress = form.progress();
        let request = self.request_with(
            Method::POST,
            &target,
            Some(content_type),
            form.boxed_unsync(),
        );
        let exchange = async {
            let (response, lease) = self.pool.send(request, Carrier::Task).await?;
            read_whole(response, lease, DOCUMENT_BYTES_MAX).await
        };
        tokio::select! {
            answer = exchange => answer.map(drop),
            () = stalled(&progress) => Err(ClientError::Timeout { waited: STALL }),
        }
    }

    /// Asks for an archive of a file or directory and returns it as it arrives. It is complete
    /// when the stream ends without an error.
    ///
    /// # Errors
    /// Whatever kept the executor from packing it.
    pub async fn download(&self, download: &Download) -> Result<ByteStream, ClientError> {
        let path = percent_encoded(text_of(&download.path)?);
        let format = match download.format {
            ArchiveFormat::Zip => "zip",
            ArchiveFormat::Tar => "tar",
        };
        let target = format!("/download_files?path={path}&format={format}");
        let request = self.request(Method::GET, &target, None);
        let (response, lease) = tokio::time::timeout(STALL, self.pool.send(request, Carrier::Task))
            .await
            .unwrap_or(Err(ClientError::Timeout { waited: STALL }))?;
        if !response.status().is_success() {
            return Err(refusal_in(response, lease).await);
        }
        Ok(Box::pin(BodyStream::new(
            response.into_body(),
            lease,
            STALL,
        )))
    }
}

/// What an answer that is no success says.
pub(super) async fn refusal_in(response: Response<Incoming>, lease: Lease) -> ClientError {
    let refusal = read_whole(response, lease, DOCUMENT_BYTES_MAX);
    let refusal = tokio::time::timeout(STALL, refusal).await;
    let refusal = refusal.unwrap_or(Err(ClientError::Timeout { waited: STALL }));
    refusal.err().unwrap_or(ClientError::InvalidAnswer {
        problem: "a refusal that is none".to_owned(),
    })
}

/// Ready once the last progress is too long ago.
pub(super) async fn stalled(progress: &Mutex<Instant>) {
    loop {
        let last = *progress.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = last + STALL;
        if deadline <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(deadline.into()).await;
    }
}

/// A body on its way. Read to its end, its connection is used again.
pub(super) struct BodyStream {
    body: Incoming,
    lease: Option<Lease>,
    /// How long it may make no progress.
    stall: Duration,
    /// Runs while the next piece is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl BodyStream {
    pub(super) fn new(body: Incoming, lease: Lease, stall: Duration) -> Self {
        Self {
            body,
            lease: Some(lease),
            stall,
            timer: None,
        }
    }
}

impl Stream for BodyStream {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while this.lease.is_some() {
            let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
                let stall = this.stall;
                let timer = this
                    .timer
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
                ready!(timer.as_mut().poll(cx));
                this.lease = None;
                return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
            };
            this.timer = None;
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => {
                    this.lease = None;
                    return Poll::Ready(Some(Err(io::Error::other(error))));
                }
                None => {
                    if let Some(lease) = this.lease.take() {
                        lease.give_back();
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}

/// A text as the value of a query parameter.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
