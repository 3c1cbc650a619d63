//! The chain: what a record's digest is made of, and the check of a stored record against it.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use zareba_protocol::SessionId;

use crate::{Digest, EntryKind, IdempotencyKey, Record, payload::Stored};

/// Goes into every digest first, so that another way to make them can never give the same ones.
const SCHEME: &[u8] = b"zareba-event-1";

/// A record as a database keeps it: text, nothing of it believed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) session: SessionId,
    pub(crate) sequence: u64,
    pub(crate) time: String,
    pub(crate) kind: String,
    pub(crate) cause: Option<u64>,
    pub(crate) key: Option<String>,
    pub(crate) stored: Stored,
    pub(crate) previous: String,
    pub(crate) digest: String,
}

impl Row {
    /// The digest that the row should have.
    pub(crate) fn computed(&self) -> Result<Digest, String> {
        let previous = Digest::from_hex(&self.previous).ok_or("its `previous` is no digest")?;
        let mut hash = Fields::default();
        hash.field(SCHEME);
        hash.field(self.session.as_str().as_bytes());
        hash.field(&self.sequence.to_be_bytes());
        hash.field(self.time.as_bytes());
        hash.field(self.kind.as_bytes());
        hash.option(self.cause.map(u64::to_be_bytes).as_ref().map(|c| &c[..]));
        hash.option(self.key.as_ref().map(String::as_bytes));
        match &self.stored {
            Stored::Inline(text) => {
                hash.field(b"inline");
                hash.field(text.as_bytes());
            }
            Stored::Apart(digest) => {
                hash.field(b"apart");
                hash.field(digest.as_bytes());
            }
        }
        hash.field(&previous.0);
        Ok(Digest(hash.0.finalize().into()))
    }

    /// Whether the row is what was once written.
    pub(crate) fn check(&self) -> Result<Digest, String> {
        let computed = self.computed()?;
        if Digest::from_hex(&self.digest) == Some(computed) {
            Ok(computed)
        } else {
            Err("its digest does not fit its content".to_owned())
        }
    }

    /// Whether the row can stand behind another: its digest if it can.
    pub(crate) fn follows(&self, next: u64, last: Digest) -> Result<Digest, String> {
        if self.sequence != next {
            return Err(format!(
                "it has number {}, and {next} comes next",
                self.sequence
            ));
        }
        if Digest::from_hex(&self.previous) != Some(last) {
            return Err("it does not name the record before it".to_owned());
        }
        self.check()
    }

    /// What it takes of a database, nearly, without what is kept apart.
    pub(crate) fn bytes(&self) -> usize {
        let (Stored::Inline(text) | Stored::Apart(text)) = &self.stored;
        text.len()
    }

    /// The record, once the row is checked; `whole` is the payload when it is kept apart.
    pub(crate) fn into_record(self, whole: Option<&[u8]>) -> Result<Record, String> {
        let digest = self.check()?;
        let text = match (&self.stored, whole) {
            (Stored::Inline(text), _) => text.as_bytes(),
            (Stored::Apart(wanted), Some(bytes)) => {
                if Digest::of(bytes).to_string() != *wanted {
                    return Err("its payload does not fit its digest".to_owned());
                }
                bytes
            }
            (Stored::Apart(_), None) => return Err("its payload is missing".to_owned()),
        };
        let payload = serde_json::from_slice(text)
            .map_err(|error| format!("its payload is no JSON object: {error}"))?;
        Ok(Record {
            payload,
            sequence: self.sequence,
            time: self.time.parse().map_err(|_| "its time is none")?,
            kind: EntryKind::from_word(&self.kind).ok_or("its kind is unknown")?,
            cause: self.cause,
            key: (self.key.map(IdempotencyKey::new).transpose()).map_err(|e| e.to_string())?,
            previous: Digest::from_hex(&self.previous).ok_or("its `previous` is no digest")?,
            digest,
            session: self.session,
        })
    }
}

/// What the first record of a session has as its previous digest.
pub(crate) fn origin(session: &SessionId) -> Digest {
    Digest::of(session.as_str().as_bytes())
}

/// A time as it is stored and hashed. Microseconds are what every database keeps.
pub(crate) fn time_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Now, as exactly as it can be read back.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// Hashes fields with their lengths in front, so that no two lists of fields are the same bytes.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn option(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.field(b"none"),
            Some(bytes) => {
                self.field(b"some");
                self.field(bytes);
            }
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
