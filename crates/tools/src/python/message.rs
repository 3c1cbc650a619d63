//! What goes to a worker and what comes from it: one JSON object per line.
//!
//! What comes is hostile (G-1): lines have a length, numbers that nobody asked about are ignored,
//! and texts that are too long or make no sense end the worker. A line is never read into more
//! than a few times its length: lists are cut while they are read, and values of any shape stay
//! the text that they are until somebody has looked at its size.

use std::{fmt, marker::PhantomData};

use bytes::{Buf as _, Bytes, BytesMut};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::{Entrypoint, LoadFailure};

/// The longest line either way: the largest arguments or result, and what JSON adds to them.
pub(super) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The longest arguments or result.
pub(super) const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Items of one list that are kept: tools, toolkits, failures.
pub(super) const ITEMS_MAX: usize = 512;

/// What is sent to a worker.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request<'a> {
    /// The first one: what to load.
    Load {
        entrypoints: Vec<LoadRequest<'a>>,
        threads: usize,
        output_bytes_max: usize,
        value_bytes_max: usize,
    },
    /// Call a tool.
    Call {
        id: u64,
        tool: &'a str,
        args: &'a [Value],
        kwargs: &'a Map<String, Value>,
        /// Make what annotations ask for of plain values.
        coerce: bool,
    },
    /// Stop a call.
    Cancel { id: u64 },
}

#[derive(Debug, Serialize)]
pub(super) struct LoadRequest<'a> {
    text: &'a str,
    module: &'a str,
    attribute: &'a str,
    arguments: Option<&'a Map<String, Value>>,
}

impl<'a> From<&'a Entrypoint> for LoadRequest<'a> {
    fn from(entrypoint: &'a Entrypoint) -> Self {
        Self {
            text: entrypoint.as_str(),
            module: entrypoint.module(),
            attribute: entrypoint.attribute(),
            arguments: entrypoint.arguments(),
        }
    }
}

impl Request<'_> {
    /// The line, with its end.
    pub(super) fn line(&self) -> Result<Bytes, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line.into())
    }
}

/// What a worker sends.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The first one: what it has loaded.
    Ready(Ready),
    /// What came of a call.
    Done(Done),
}

/// What a worker has loaded.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Ready {
    pub(super) python: String,
    pub(super) toolkits: Cut<String>,
    pub(super) tools: Cut<LoadedTool>,
    pub(super) failures: Cut<LoadFailure>,
}

/// A tool as a worker describes it.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct LoadedTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Unread,
    pub(super) accepts: Option<Unread>,
    pub(super) entrypoint: String,
}

/// JSON that is still the text that came: a few bytes of it can become many in memory.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Unread(Box<RawValue>);

impl Unread {
    pub(super) fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Unread {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// The first [`ITEMS_MAX`] items of a list. What follows is counted and not kept.
#[derive(Debug, PartialEq)]
pub(super) struct Cut<T> {
    pub(super) items: Vec<T>,
    pub(super) left_out: usize,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Cut<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Cutting(PhantomData))
    }
}

struct Cutting<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Cutting<T> {
    type Value = Cut<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cut<T>, A::Error> {
        let (mut items, mut left_out) = (Vec::new(), 0);
        while items.len() < ITEMS_MAX {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(Cut { items, left_out }),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            left_out += 1;
        }
        Ok(Cut { items, left_out })
    }
}

/// What came of a call.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Done {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) stdout: String,
    #[serde(default)]
    pub(super) stderr: String,
    #[serde(default)]
    pub(super) truncated: bool,
    pub(super) outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// With a result, as JSON text.
    Returned { json: String },
    /// With an exception.
    Raised {
        kind: String,
        message: String,
        traceback: String,
    },
    /// With a result that JSON cannot say.
    NotJson {
        kind: String,
        description: String,
        message: String,
    },
    /// With `SystemExit`.
    Exited { message: String },
    /// With a result that is too large.
    TooLarge { bytes: usize },
    /// Because that was asked for.
    Cancelled,
}

/// Why what a worker sends makes no sense.
#[derive(Debug, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("it sent a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it sent what is no message: {0}")]
    NoMessage(serde_json::Error),
}

/// Cuts what arrives into lines and reads them.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    /// Never more than one line that is not whole, and what came with its end.
    buffer: BytesMut,
    /// Up to here there is no end of a line.
    searched: usize,
}

impl ReplyReader {
    /// Takes bytes that have arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message of what has arrived.
    pub(super) fn next(&mut self) -> Result<Option<Reply>, Nonsense> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', rest) else {
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MAX {
                return Err(Nonsense::TooLong);
            }
            return Ok(None);
        };
        let line = self.buffer.split_to(self.searched + found);
        self.buffer.advance(1);
        self.searched = 0;
        if line.len() > LINE_BYTES_MAX {
            return Err(Nonsense::TooLong);
        }
        let reply = serde_json::from_slice(&line).map_err(Nonsense::NoMessage)?;
        Ok(Some(reply))
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
