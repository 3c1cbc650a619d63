//! What the builder asks of the Engine by itself.
//!
//! The client that all else goes through takes BuildKit's answers for broken ones, and knows one
//! name for an image. Everything here is sent once: what makes something is never repeated.

use std::{fs::File, future::Future, io, time::Duration};

use bollard::errors::Error as Reply;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt as _, stream};
use http::Method;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use super::{
    BuildError, BuildEvent, BuildListener,
    progress::Reading,
    transport::{Answer, Transport},
};
use crate::{
    EngineAddress, EngineError, EngineFault,
    engine::{Engine, EngineKind},
};

/// How long the Engine may take for an answer of one piece.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long removing from the cache may take.
const PRUNE_MAX: Duration = Duration::from_secs(10 * 60);
/// The longest line of an answer, and the longest answer of one piece.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the context that are read at once.
const PIECE_BYTES: usize = 128 * 1024;
/// The first version that has BuildKit.
const BUILDKIT_SINCE: (u32, u32) = (1, 39);

/// A way to the Engine for builds.
#[derive(Clone, Debug)]
pub(super) struct EngineHttp {
    transport: Transport,
}

impl EngineHttp {
    pub(super) fn new(address: &EngineAddress) -> Result<Self, BuildError> {
        let transport = Transport::new(address)?;
        Ok(Self { transport })
    }

    /// What the Engine knows of something; None when it is not there.
    pub(super) async fn get(&self, deed: &str, path: &str) -> Result<Option<Value>, BuildError> {
        let answer = self.answer(deed, Method::GET, path, &[]);
        match in_time(deed, DEADLINE, answer).await {
            Err(BuildError::Engine(error)) if error.fault == EngineFault::Missing => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Removes from the cache of builds.
    pub(super) async fn prune(&self, query: &[(&str, String)]) -> Result<Value, BuildError> {
        let deed = "remove from the cache of builds";
        let answer = self.answer(deed, Method::POST, "/build/prune", query);
        in_time(deed, PRUNE_MAX, answer).await
    }

    /// Builds an image and tells all of it. Dropping the future closes the connection, at which
    /// the Engine gives the build up.
    pub(super) async fn build(
        &self,
        query: &[(&str, String)],
        (context, length): (File, u64),
        listener: &BuildListener,
    ) -> Result<(), BuildError> {
        let deed = "build an image";
        let failed = |error: io::Error| EngineError::new(deed, Reply::from(error));
        let context = Box::pin(pieces(context, length, listener.clone()));
        let url = self.transport.url("/build", query);
        let sent = self.transport.send(Method::POST, url, Some(context)).await;
        let sent = sent.map_err(|error| EngineError::new(deed, error))?;
        let mut answer = accepted(deed, sent).await?;
        let mut reading = Reading::new(listener.clone());
        let mut lines = Lines::default();
        while let Some(piece) = answer.body.try_next().await.map_err(failed)? {
            lines.take(&piece, |line| reading.line(line))?;
        }
        reading
            .end()
            .map_err(|(message, output)| BuildError::Failed { message, output })
    }

    async fn answer(
        &self,
        deed: &str,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Value, BuildError> {
        let url = self.transport.url(path, query);
        let sent = self.transport.send(method, url, None).await;
        let sent = sent.map_err(|error| EngineError::new(deed, error))?;
        let text = whole(deed, accepted(deed, sent).await?).await?;
        serde_json::from_slice(&text)
            .map_err(|error| EngineError::new(deed, Reply::from(error)).into())
    }
}

async fn in_time(
    deed: &str,
    longest: Duration,
    answer: impl Future<Output = Result<Value, BuildError>>,
) -> Result<Value, BuildError> {
    let in_time = tokio::time::timeout(longest, answer).await;
    in_time.unwrap_or_else(|_| Err(EngineError::new(deed, Reply::RequestTimeoutError).into()))
}

async fn accepted(deed: &str, answer: Answer) -> Result<Answer, BuildError> {
    let status = answer.status;
    if status.is_success() {
        return Ok(answer);
    }
    let text = whole(deed, answer).await?;
    let parsed: Option<Value> = serde_json::from_slice(&text).ok();
    let message = parsed.as_ref().and_then(|it| it.get("message")?.as_str());
    let reply = Reply::DockerResponseServerError {
        status_code: status.as_u16(),
        message: message.map_or_else(|| status.to_string(), str::to_owned),
    };
    Err(EngineError::new(deed, reply).into())
}

/// Whether an Engine has BuildKit.
pub(super) async fn has_buildkit(engine: &Engine) -> Result<bool, BuildError> {
    if engine.kind() == EngineKind::Podman {
        return Ok(false);
    }
    let version = engine.api_version().await?;
    let parts = version.split_once('.');
    let parts = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    Ok(parts.is_some_and(|version: (u32, u32)| version >= BUILDKIT_SINCE))
}

/// The context, piece by piece.
fn pieces(
    context: File,
    length: u64,
    listener: BuildListener,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let file = tokio::fs::File::from_std(context);
    stream::try_unfold((file, 0), move |(mut file, sent)| {
        let listener = listener.clone();
        async move {
            let mut piece = BytesMut::with_capacity(PIECE_BYTES);
            if file.read_buf(&mut piece).await? == 0 {
                return Ok(None);
            }
            let sent = sent + piece.len() as u64;
            listener(&BuildEvent::Sending {
                bytes: sent,
                of: length,
            });
            Ok(Some((piece.freeze(), (file, sent))))
        }
    })
}

/// Cuts an answer into its lines.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn take(&mut self, piece: &[u8], mut each: impl FnMut(&Value)) -> Result<(), BuildError> {
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.rest.extend_from_slice(part);
            if self.rest.len() > ANSWER_BYTES_MAX {
                return Err(too_long());
            }
            if parts.peek().is_some() {
                // What is no JSON is nothing that we know.
                if let Ok(line) = serde_json::from_slice(&self.rest) {
                    each(&line);
                }
                self.rest.clear();
            }
        }
        Ok(())
    }
}

async fn whole(deed: &str, mut answer: Answer) -> Result<Vec<u8>, BuildError> {
    let failed = |error: io::Error| EngineError::new(deed, Reply::from(error));
    let mut text = Vec::new();
    while let Some(piece) = answer.body.try_next().await.map_err(failed)? {
        text.extend_from_slice(&piece);
        if text.len() > ANSWER_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(text)
}

fn too_long() -> BuildError {
    let reason = io::Error::other(format!(
        "it answers with more than {ANSWER_BYTES_MAX} bytes"
    ));
    EngineError::new("be understood", Reply::from(reason)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let text = b"{\"a\":1}\n{\"a\":2}\nno json\n{\"a\":3}\n{\"a\":4";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut numbers = Vec::new();
            for piece in text.chunks(size) {
                let each = |line: &Value| numbers.push(line["a"].as_u64().unwrap());
                lines.take(piece, each).unwrap();
            }
            assert_eq!(numbers, [1, 2, 3], "{size}");
        }
        let endless = vec![b'x'; ANSWER_BYTES_MAX + 1];
        assert!(Lines::default().take(&endless, |_| {}).is_err());
    }
}
