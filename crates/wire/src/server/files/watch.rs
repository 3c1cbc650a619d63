//! Changes as lines of JSON, with a sign of life when there are none.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::paths::SIGN_OF_LIFE;
use crate::files::ChangeStream;

/// Writes each change on a line of its own.
pub(super) fn lines(changes: ChangeStream) -> impl Stream<Item = io::Result<Bytes>> {
    let mut clock = interval(SIGN_OF_LIFE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Lines { changes, clock }
}

struct Lines {
    changes: ChangeStream,
    /// Its first tick is at once, so that the client need not wait for the first change to know
    /// that there is a watch.
    clock: Interval,
}

impl Stream for Lines {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = self.changes.as_mut().poll_next(cx) {
            let line = next
                .map(|change| change.map(|change| Bytes::from(format!("{}\n", change.to_json()))));
            return Poll::Ready(line);
        }
        match self.clock.poll_tick(cx) {
            Poll::Ready(_) => Poll::Ready(Some(Ok(Bytes::from_static(b"\n")))),
            Poll::Pending => Poll::Pending,
        }
    }
}
