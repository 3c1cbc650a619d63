//! One line of an export: a record as it is stored, or bytes that the next record keeps apart.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zareba_protocol::SessionId;

use crate::{
    Digest,
    chain::Row,
    payload::{Blob, Stored},
};

/// One line. What is kept apart stands in front of the record that needs it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Blob(BlobLine),
    Record(Box<RecordLine>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobLine {
    digest: String,
    base64: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordLine {
    session: SessionId,
    sequence: u64,
    time: String,
    kind: String,
    cause: Option<u64>,
    key: Option<String>,
    /// Kept byte for byte, because the digest is made of these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    /// The digest of the blob that the payload is.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_apart: Option<String>,
    /// The digests of all blobs of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blobs: Vec<String>,
    previous: String,
    digest: String,
}

impl BlobLine {
    pub(super) fn new(digest: String, bytes: &[u8]) -> Self {
        Self {
            digest,
            base64: STANDARD.encode(bytes),
        }
    }

    /// The bytes, if they are what the digest says.
    pub(super) fn blob(&self) -> Result<Blob, String> {
        let bytes = STANDARD.decode(&self.base64);
        let bytes = bytes.map_err(|error| format!("its bytes are no base64: {error}"))?;
        let digest = Digest::of(&bytes);
        if digest.to_string() != self.digest {
            return Err("its bytes do not fit its digest".to_owned());
        }
        Ok(Blob {
            digest,
            bytes: bytes.into(),
        })
    }
}

impl RecordLine {
    pub(super) fn new(row: Row, blobs: Vec<String>) -> Result<Self, serde_json::Error> {
        let (payload, payload_apart) = match row.stored {
            Stored::Inline(text) => (Some(RawValue::from_string(text)?), None),
            Stored::Apart(digest) => (None, Some(digest)),
        };
        Ok(Self {
            session: row.session,
            sequence: row.sequence,
            time: row.time,
            kind: row.kind,
            cause: row.cause,
            key: row.key,
            payload,
            payload_apart,
            blobs,
            previous: row.previous,
            digest: row.digest,
        })
    }

    /// The record and its blobs, which are taken from those that stood in front of it.
    pub(super) fn row(self, given: &[Blob]) -> Result<Row, String> {
        let names: Vec<String> = given.iter().map(|blob| blob.digest.to_string()).collect();
        if names != self.blobs {
            return Err("what it keeps apart does not stand in front of it".to_owned());
        }
        let stored = match (self.payload, self.payload_apart) {
            (Some(payload), None) => Stored::Inline(payload.get().to_owned()),
            (None, Some(digest)) if names.contains(&digest) => Stored::Apart(digest),
            _ => return Err("it has no payload".to_owned()),
        };
        Ok(Row {
            session: self.session,
            sequence: self.sequence,
            time: self.time,
            kind: self.kind,
            cause: self.cause,
            key: self.key,
            stored,
            previous: self.previous,
            digest: self.digest,
        })
    }
}
