//! A request's body that comes back when whoever got it is done.
//!
//! A client that is refused may still be sending. Closing at once would reset the connection, and
//! the client would see that instead of the answer; so the rest is read away first.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::oneshot;

use super::body::{TimedBody, linger};

/// The data of a body, with deadlines, for somebody who takes it over as a stream.
pub struct LentBody {
    body: Option<TimedBody>,
    home: Option<oneshot::Sender<TimedBody>>,
}

/// Where it comes back to.
pub struct Lender {
    returned: oneshot::Receiver<TimedBody>,
}

impl LentBody {
    /// Lends a body whose sender may pause for `stall` at the most.
    pub fn new(body: Body, stall: Duration) -> (Self, Lender) {
        let (home, returned) = oneshot::channel();
        let lent = Self {
            body: Some(TimedBody::new(body, stall)),
            home: Some(home),
        };
        (lent, Lender { returned })
    }
}

impl Lender {
    /// Reads the rest away, within the same limits as for every refused body. Does nothing when
    /// whoever got the body still has it.
    pub async fn linger(mut self) {
        if let Ok(body) = self.returned.try_recv() {
            linger(body).await;
        }
    }
}

impl Stream for LentBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_next(cx),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if let (Some(body), Some(home)) = (self.body.take(), self.home.take()) {
            // Nobody waits for it when the client is gone.
            drop(home.send(body));
        }
    }
}

impl fmt::Debug for LentBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LentBody")
    }
}

impl fmt::Debug for Lender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lender")
    }
}
