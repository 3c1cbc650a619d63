//! HTTP/1 without TLS: one request per connection, read strictly, its host judged.
//!
//! A connection carries exactly one request. Its head is passed on with `Connection: close` in
//! place of what the client said about the connection, its body as far as the head announces,
//! and whatever the client sends after that is read and dropped. So a second request on the same
//! connection, be it rightful or smuggled, never leaves, and no answer has to be understood.
//! Passing on several requests per connection was rejected: it gains little, most traffic being
//! TLS, and its safety would rest on reading every head exactly as every server does.

mod body;
mod head;
mod refusal;

pub(crate) use body::Body;
pub(crate) use head::{HEAD_BYTES_MAX, Head, Reading, read_head};
pub(crate) use refusal::{denied, unreachable};
