//! Answers that keep something until their last byte is sent.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use zareba_facades::openhands::Reserved;

/// The same answer, whose body keeps what was left in its extensions.
pub(crate) fn hold(mut response: Response) -> Response {
    match response.extensions_mut().remove::<Reserved>() {
        None => response,
        Some(reserved) => response.map(|body| {
            Body::new(HeldBody {
                body,
                _reserved: reserved,
            })
        }),
    }
}

struct HeldBody {
    body: Body,
    _reserved: Reserved,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
