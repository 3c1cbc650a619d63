//! What is remembered: an [`Entry`] goes in, a [`Record`] comes out.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use zareba_protocol::SessionId;

/// What a record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Something was asked for.
    Action,
    /// What came of it; its cause is the action's number.
    Observation,
    /// The sandbox changed its status.
    Status,
    /// Something about the session itself: made, recovered, closed, a limit, a verdict.
    Note,
}

/// Something to remember.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it tells of.
    pub kind: EntryKind,
    /// The number of the record that led to it.
    pub cause: Option<u64>,
    /// The caller's name for it: a second entry with the same one is not written.
    pub key: Option<IdempotencyKey>,
    /// The event as a JSON object, secrets already masked.
    pub payload: Map<String, Value>,
}

/// Something that is remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Whose log it is in.
    pub session: SessionId,
    /// Its number: 0, 1, 2 and so on in each session.
    pub sequence: u64,
    /// When it was written, by the clock on the wall: for people, never for order.
    pub time: Timestamp,
    /// What it tells of.
    pub kind: EntryKind,
    /// The number of the record that led to it.
    pub cause: Option<u64>,
    /// The caller's name for it.
    pub key: Option<IdempotencyKey>,
    /// The event as a JSON object.
    pub payload: Map<String, Value>,
    /// The digest of the record before it; of the session's name for the first.
    pub previous: Digest,
    /// The digest of everything above, over the bytes that are stored.
    pub digest: Digest,
}

/// A SHA-256, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

/// The caller's name for an action, so that a repeated request is not a second action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// A text that is no idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key has 1 to {max} visible ASCII characters", max = IdempotencyKey::LENGTH_MAX)]
pub struct InvalidKey;

impl IdempotencyKey {
    /// What a key may have in characters.
    pub const LENGTH_MAX: usize = 255;

    /// Takes a key of 1 to 255 visible ASCII characters.
    ///
    /// # Errors
    /// When it is another.
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidKey> {
        let key = key.into();
        let is_valid = (1..=Self::LENGTH_MAX).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then_some(Self(key)).ok_or(InvalidKey)
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Record {
    /// The payload as it was before it was recorded, but for references: fields of its own that
    /// are called `$blob` have that name again. Such a field refers to nothing.
    pub fn written_payload(&self) -> Map<String, Value> {
        let mut payload = self.payload.clone();
        crate::payload::unescape(&mut payload);
        payload
    }
}

impl EntryKind {
    /// The word in the database and in exports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Observation => "observation",
            Self::Status => "status",
            Self::Note => "note",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Action, Self::Observation, Self::Status, Self::Note]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest with these 64 lower-case hexadecimal digits: there is one way to write each.
    pub fn from_hex(text: &str) -> Option<Self> {
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ];
        }
        formatter.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
