//! A key as text, and what is stored of it.

use jiff::Timestamp;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zareba_api::Key;

const PREFIX: &str = "zrb_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// A key's text. Both parts are hexadecimal, so that it survives any place it is pasted into.
pub(super) struct Token {
    text: String,
}

impl Token {
    pub(super) fn random() -> Self {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        rand::rng().fill(&mut bytes[..]);
        let (id, secret) = bytes.split_at(ID_BYTES);
        let text = format!("{PREFIX}{}_{}", hexadecimal(id), hexadecimal(secret));
        Self { text }
    }

    /// Whether it is one of ours by its looks; nothing else is looked up.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_ours = Self::is_id(id) && is_hexadecimal(secret, SECRET_BYTES);
        is_ours.then(|| Self {
            text: text.to_owned(),
        })
    }

    /// Whether a text may be the name of a key.
    pub(super) fn is_id(text: &str) -> bool {
        is_hexadecimal(text, ID_BYTES)
    }

    pub(super) fn id(&self) -> &str {
        &self.text[PREFIX.len()..PREFIX.len() + 2 * ID_BYTES]
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn digest(&self) -> String {
        hexadecimal(&Sha256::digest(self.text.as_bytes()))
    }
}

/// What is stored of a key.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) key: Key,
    /// Of the whole text, in hexadecimal.
    digest: String,
}

impl Stored {
    pub(super) fn new(key: Key, token: &Token) -> Self {
        let digest = token.digest();
        Self { key, digest }
    }

    /// A document that cannot be read is no key.
    pub(super) fn from_value(value: Value) -> Option<Self> {
        match serde_json::from_value(value) {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::error!(%error, "a stored key cannot be read and is not valid");
                None
            }
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "keys are strings and no part of it refuses to be written"
    )]
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a stored key is always JSON")
    }

    /// Whether the token is this very key's, and the key valid now.
    pub(super) fn admits(&self, token: &Token) -> bool {
        let offered = token.digest();
        let is_equal: bool = self.digest.as_bytes().ct_eq(offered.as_bytes()).into();
        is_equal && self.is_current()
    }

    pub(super) fn is_current(&self) -> bool {
        self.key
            .expires
            .is_none_or(|expires| Timestamp::now() < expires)
    }
}

fn is_hexadecimal(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
