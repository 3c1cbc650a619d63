//! How a payload is kept: small ones in their record, large ones apart by their digest, and the
//! large texts of very large ones replaced by references.

mod escape;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::{Digest, LogError};
use escape::Escaped;

pub(crate) use escape::undo as unescape;

/// Up to here a payload's JSON stands in its record.
const INLINE_BYTES_MAX: usize = 256 * 1024;
/// Up to here a payload is read back whole; of a larger one the large parts become references.
const WHOLE_BYTES_MAX: usize = 1024 * 1024;
/// More than this nobody has to remember.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Only larger texts and fields are worth a reference.
const PART_BYTES_MIN: usize = 16 * 1024;
/// What a reference shows of what it stands for.
const HEAD_BYTES_MAX: usize = 4 * 1024;
/// A reader of JSON stops at 128 levels, and a reference adds one.
const DEPTH_MAX: usize = 120;

/// Where a payload's JSON is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// In the record itself.
    Inline(String),
    /// In the blob with this digest, as text that is not believed yet.
    Apart(String),
}

/// Bytes that are kept by their digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) bytes: Bytes,
}

/// A payload that is ready to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    /// As it will be read back.
    pub(crate) payload: Map<String, Value>,
    pub(crate) stored: Stored,
    pub(crate) blobs: Vec<Blob>,
}

impl Folded {
    /// What it takes of a database, nearly.
    pub(crate) fn bytes(&self) -> usize {
        let inline = match &self.stored {
            Stored::Inline(text) | Stored::Apart(text) => text.len(),
        };
        let apart: usize = self.blobs.iter().map(|blob| blob.bytes.len()).sum();
        inline + apart
    }
}

impl Blob {
    fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            digest: Digest::of(&bytes),
            bytes,
        }
    }

    fn reference(&self, form: &str) -> Value {
        let mut head = &self.bytes[..self.bytes.len().min(HEAD_BYTES_MAX)];
        // Cut through a character: what is in front of it is shown.
        if let Err(error) = std::str::from_utf8(head) {
            head = &head[..error.valid_up_to()];
        }
        json!({
            "$blob": self.digest.to_string(),
            "form": form,
            "bytes": self.bytes.len(),
            "head": String::from_utf8_lossy(head),
        })
    }
}

/// Makes a payload ready to be stored.
pub(crate) async fn fold(mut payload: Map<String, Value>) -> Result<Folded, LogError> {
    let mut small = small_text(&payload);
    if small.is_some() {
        check_depth(&payload)?;
        if escape::all(&mut payload) == Escaped::Some {
            small = small_text(&payload);
        }
    }
    if let Some(text) = small {
        return Ok(Folded {
            payload,
            stored: Stored::Inline(text),
            blobs: Vec::new(),
        });
    }
    // Hashing and copying of megabytes must not hold up what else this thread does.
    tokio::task::spawn_blocking(move || fold_large(payload))
        .await
        .map_err(|_| LogError::Closed)?
}

fn fold_large(mut payload: Map<String, Value>) -> Result<Folded, LogError> {
    check_depth(&payload)?;
    escape::all(&mut payload);
    let mut text = text_of(&payload);
    if text.len() > PAYLOAD_BYTES_MAX {
        return Err(LogError::TooLarge {
            what: "a payload",
            bytes: text.len(),
            limit: PAYLOAD_BYTES_MAX,
        });
    }
    let mut blobs = Vec::new();
    if text.len() > WHOLE_BYTES_MAX {
        text = detach(&mut payload, &mut blobs, text);
    }
    let stored = if text.len() <= INLINE_BYTES_MAX {
        Stored::Inline(text)
    } else {
        let whole = Blob::new(text);
        let digest = whole.digest.to_string();
        blobs.push(whole);
        Stored::Apart(digest)
    };
    Ok(Folded {
        payload,
        stored,
        blobs,
    })
}

/// Replaces parts until the payload may be read back whole: texts, then whole fields, then all.
fn detach(payload: &mut Map<String, Value>, blobs: &mut Vec<Blob>, whole: String) -> String {
    payload
        .values_mut()
        .for_each(|value| detach_texts(value, blobs));
    let mut text = text_of(payload);
    if text.len() > WHOLE_BYTES_MAX {
        for value in payload.values_mut() {
            let part = value.to_string();
            if part.len() >= PART_BYTES_MIN {
                replace(value, blobs, Blob::new(part), "json");
            }
        }
        text = text_of(payload);
    }
    if text.len() > WHOLE_BYTES_MAX {
        blobs.clear();
        let blob = Blob::new(whole);
        if let Value::Object(reference) = blob.reference("json") {
            *payload = reference;
        }
        blobs.push(blob);
        text = text_of(payload);
    }
    text
}

fn detach_texts(value: &mut Value, blobs: &mut Vec<Blob>) {
    match value {
        Value::String(text) if text.len() >= PART_BYTES_MIN => {
            let blob = Blob::new(std::mem::take(text));
            replace(value, blobs, blob, "text");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| detach_texts(item, blobs)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| detach_texts(field, blobs)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace(value: &mut Value, blobs: &mut Vec<Blob>, blob: Blob, form: &str) {
    *value = blob.reference(form);
    blobs.push(blob);
}

fn text_of(payload: &Map<String, Value>) -> String {
    // A map of JSON values always has a text: its keys are strings.
    serde_json::to_string(payload).unwrap_or_default()
}

/// The payload's JSON if that is small, found without writing all of a large one.
fn small_text(payload: &Map<String, Value>) -> Option<String> {
    let mut bounded = Bounded(Vec::with_capacity(512));
    serde_json::to_writer(&mut bounded, payload).ok()?;
    String::from_utf8(bounded.0).ok()
}

struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > INLINE_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A payload that no reader could parse must not be written.
fn check_depth(payload: &Map<String, Value>) -> Result<(), LogError> {
    let mut level: Vec<&Value> = payload.values().collect();
    let mut depth = 1;
    while !level.is_empty() {
        depth += 1;
        if depth > DEPTH_MAX {
            return Err(LogError::TooDeep { limit: DEPTH_MAX });
        }
        level = (level.into_iter())
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
            })
            .filter(|value| value.is_array() || value.is_object())
            .collect();
    }
    Ok(())
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
