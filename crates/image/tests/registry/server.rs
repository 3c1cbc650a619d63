//! A registry that answers from a shelf, except where a test says otherwise.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::shelf::Shelf;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Path and query; with scheme and host too when the server is asked as a proxy.
    pub(crate) target: String,
    pub(crate) authorization: Option<String>,
    pub(crate) range: Option<String>,
    pub(crate) accept: Option<String>,
    /// How often the same target was asked for before.
    pub(crate) before: usize,
}

impl Seen {
    pub(crate) fn is_blob(&self) -> bool {
        self.target.contains("/blobs/")
    }

    pub(crate) fn is_manifest(&self) -> bool {
        self.target.contains("/manifests/")
    }
}

/// What a server sends back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Whole(Vec<u8>),
    /// Without saying how long it is.
    Streamed(Vec<u8>),
    /// The connection ends after these bytes.
    Cut(Vec<u8>),
    /// Nothing comes after these bytes, and the connection stays.
    Stalled(Vec<u8>),
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self::whole(status, Vec::new())
    }

    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::whole(200, body.into())
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::status(307).header("location", to)
    }

    /// 401, with what is wanted.
    pub(crate) fn challenge(challenge: &str) -> Self {
        Self::status(401).header("www-authenticate", challenge)
    }

    fn whole(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Whole(body),
        }
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Does not say how long the body is.
    pub(crate) fn streamed(mut self) -> Self {
        self.body = Body::Streamed(self.take_bytes());
        self
    }

    /// Announces the whole body, and sends only the first `count` bytes.
    pub(crate) fn cut_after(mut self, count: usize) -> Self {
        let (length, kept) = self.shortened(count);
        self.body = Body::Cut(kept);
        self.header("content-length", &length)
    }

    /// Announces the whole body, and falls silent after `count` bytes.
    pub(crate) fn stalled_after(mut self, count: usize) -> Self {
        let (length, kept) = self.shortened(count);
        self.body = Body::Stalled(kept);
        self.header("content-length", &length)
    }

    fn shortened(&mut self, count: usize) -> (String, Vec<u8>) {
        let mut bytes = self.take_bytes();
        let length = bytes.len().to_string();
        bytes.truncate(count);
        (length, bytes)
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        match &mut self.body {
            Body::Whole(bytes)
            | Body::Streamed(bytes)
            | Body::Cut(bytes)
            | Body::Stalled(bytes) => std::mem::take(bytes),
        }
    }
}

type Script = dyn Fn(&Seen) -> Option<Answer> + Send + Sync;

/// Runs as long as the test's runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    shelf: Shelf,
    script: Box<Script>,
    seen: Mutex<Vec<Seen>>,
}

impl Server {
    /// Answers as `script` says, and from the shelf where it says nothing.
    pub(crate) async fn start(
        shelf: Shelf,
        script: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            shelf,
            script: Box::new(script),
            seen: Mutex::default(),
        });
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state }
    }

    /// Everything that was asked, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let answer = state.answer(&request);
        async move { Ok::<_, Infallible>(response(answer)) }
    });
    // A body that is cut on purpose ends the connection with an error.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let seen = self.note(request);
        (self.script)(&seen).unwrap_or_else(|| self.shelf.answer(&seen))
    }

    fn note(&self, request: &Request<Incoming>) -> Seen {
        let mut all = self.seen.lock().unwrap();
        let header = |name: &str| {
            let value = request.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let target = request.uri().to_string();
        let seen = Seen {
            authorization: header("authorization"),
            range: header("range"),
            accept: header("accept"),
            before: all.iter().filter(|seen| seen.target == target).count(),
            target,
        };
        all.push(seen.clone());
        seen
    }
}

fn response(answer: Answer) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(body(answer.body)).unwrap()
}

fn body(body: Body) -> UnsyncBoxBody<Bytes, io::Error> {
    let never = |error: Infallible| match error {};
    match body {
        Body::Whole(bytes) if bytes.is_empty() => Empty::new().map_err(never).boxed_unsync(),
        Body::Whole(bytes) => Full::new(bytes.into()).map_err(never).boxed_unsync(),
        Body::Streamed(bytes) => pieces(bytes, End::Proper),
        Body::Cut(bytes) => pieces(bytes, End::Broken),
        Body::Stalled(bytes) => pieces(bytes, End::None),
    }
}

#[derive(Clone, Copy)]
enum End {
    Proper,
    Broken,
    None,
}

/// Sends everything in one piece, lets it reach the other side, and ends.
fn pieces(bytes: Vec<u8>, end: End) -> UnsyncBoxBody<Bytes, io::Error> {
    let stream = stream::unfold(Some(bytes), move |bytes| async move {
        match (bytes, end) {
            (Some(bytes), _) => Some((Ok(Frame::data(Bytes::from(bytes))), None)),
            (None, End::Proper) => None,
            (None, End::Broken) => {
                tokio::task::yield_now().await;
                Some((Err(io::Error::other("cut on purpose")), None))
            }
            (None, End::None) => std::future::pending().await,
        }
    });
    StreamBody::new(stream).boxed_unsync()
}
