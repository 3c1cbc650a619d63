//! Request bodies: read with a size limit and with deadlines, or streamed with deadlines.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, extract::Request};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use http_body::Body as _;
use tokio::time::{Instant, Sleep};

use super::{
    answer::Refusal,
    limits::{BODY_RATE_MIN, LINGER_BYTES_MAX, ServerLimits},
};

/// What is set aside for a body because its sender announced it; the rest must arrive first.
const TRUSTED_ANNOUNCEMENT: u64 = 1024 * 1024;

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than may be.
    #[error("the body is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It broke off, or its sender was too slow.
    #[error("the body could not be read")]
    Broken(#[source] io::Error),
}

/// Reads a JSON body whole.
pub(super) async fn read_json(request: Request, limits: &ServerLimits) -> Result<Bytes, Refusal> {
    require_json(request.headers())?;
    read_body(request, limits.json_bytes, limits.body_stall)
        .await
        .map_err(|error| match error {
            BodyError::TooLarge { .. } => too_large(limits),
            BodyError::Broken(error) => broken(&error),
        })
}

/// Reads a body whole, of at most `limit` bytes, from a sender that never pauses longer than
/// `stall` and keeps up [`BODY_RATE_MIN`](super::BODY_RATE_MIN).
///
/// # Errors
/// When it is larger, breaks off or comes too slowly.
pub async fn read_body(
    request: Request,
    limit: usize,
    stall: Duration,
) -> Result<Bytes, BodyError> {
    let body = request.into_body();
    let announced = body.size_hint().lower();
    let mut pieces = TimedBody::new(body, stall);
    if announced > limit as u64 {
        // Nothing is read before the refusal, which would also invite a client that asked first to
        // send it all. What was sent by then is read away when the connection closes (`framing`).
        return Err(BodyError::TooLarge { limit });
    }
    let Some(first) = pieces.next().await.transpose().map_err(BodyError::Broken)? else {
        return Ok(Bytes::new());
    };
    // Nearly every body is one piece, which then needs no copy.
    if first.len() as u64 == announced {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(announced.min(TRUSTED_ANNOUNCEMENT) as usize);
    let mut piece = Some(first);
    while let Some(bytes) = piece {
        if whole.len() + bytes.len() > limit {
            linger(pieces).await;
            return Err(BodyError::TooLarge { limit });
        }
        whole.extend_from_slice(&bytes);
        piece = pieces.next().await.transpose().map_err(BodyError::Broken)?;
    }
    Ok(whole.freeze())
}

/// A page in a browser can send other types to any address without asking first.
fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(content_type) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let text = content_type.as_bytes();
    let essence = text
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let detail = "the body must be sent as `application/json`";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

fn too_large(limits: &ServerLimits) -> Refusal {
    let detail = format!(
        "the JSON body is larger than the limit of {} bytes",
        limits.json_bytes
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Reads away what a refused client is still sending. Closing at once would reset the
/// connection, and the client would see that instead of the answer.
pub async fn linger(mut rest: TimedBody) {
    let mut read = 0;
    while let Some(Ok(piece)) = rest.next().await {
        read += piece.len() as u64;
        if read > LINGER_BYTES_MAX {
            return;
        }
    }
}

/// The answer to a body that broke off or came too slowly.
pub(super) fn broken(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body arrives too slowly")
        }
        _ => Refusal::new(
            StatusCode::BAD_REQUEST,
            "the body is broken off or malformed",
        ),
    }
}

/// The data of a body, which fails when its sender pauses too long or drips.
///
/// Only time spent waiting for the sender counts, so that a slow disk on our side is not held
/// against it: one pause in all, plus a second for every [`BODY_RATE_MIN`] bytes.
#[derive(Debug)]
pub struct TimedBody {
    body: Body,
    stall: Duration,
    received: u64,
    waited: Duration,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    /// Takes a body whose sender may pause as long as `stall` at a time.
    pub fn new(body: Body, stall: Duration) -> Self {
        Self {
            body,
            stall,
            received: 0,
            waited: Duration::ZERO,
            waiting_since: None,
            timer: None,
        }
    }

    /// How long the next wait may take.
    fn patience(&self) -> Duration {
        let earned = Duration::from_secs(self.received / BODY_RATE_MIN);
        (self.stall + earned)
            .saturating_sub(self.waited)
            .min(self.stall)
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting_since.is_none() {
            let now = Instant::now();
            let deadline = now + self.patience();
            self.waiting_since = Some(now);
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(deadline),
                None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
            }
        }
        match &mut self.timer {
            Some(timer) => timer.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Stream for TimedBody {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(frame) => {
                    if let Some(since) = this.waiting_since.take() {
                        this.waited += since.elapsed();
                    }
                    let data = match frame {
                        // Trailers say nothing here.
                        Some(Ok(frame)) => match frame.into_data() {
                            Ok(data) => data,
                            Err(_) => continue,
                        },
                        Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                        None => return Poll::Ready(None),
                    };
                    this.received += data.len() as u64;
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Pending if this.poll_deadline(cx).is_ready() => {
                    return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
