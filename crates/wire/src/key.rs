//! The session key: a secret that can be sent and compared, and never printed.

use std::fmt;

use http::HeaderValue;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The header that carries the key.
pub(crate) const KEY_HEADER: &str = "x-session-api-key";

/// Finds out ahead of the first key what this processor can do for one, for copies of this process.
pub fn prepare_keys() {
    let _ = Sha256::digest([]);
}

/// The fewest bytes of a key that strangers may try (HS-2): what a random one of 128 bits has in
/// hexadecimal.
pub(crate) const KEY_BYTES_MIN: usize = 32;

/// The secret that opens one executor.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// Kept in the form in which it is sent, marked as sensitive.
    header: HeaderValue,
}

/// Why a text cannot be a session key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// An empty or blank key would look like a lock and be none.
    #[error("the session key is empty")]
    Empty,
    /// It could not be sent as a header, so that no client could ever use it.
    #[error("the session key has characters that a header cannot carry")]
    NotAHeaderValue,
}

impl SessionKey {
    /// Takes a key over from wherever the caller keeps it.
    ///
    /// # Errors
    /// Empty keys, and keys with control characters.
    pub fn new(key: &str) -> Result<Self, InvalidKey> {
        if key.trim().is_empty() {
            return Err(InvalidKey::Empty);
        }
        let mut header =
            HeaderValue::from_bytes(key.as_bytes()).map_err(|_| InvalidKey::NotAHeaderValue)?;
        header.set_sensitive(true);
        Ok(Self { header })
    }

    /// Whether it is long enough to be tried by strangers, as everywhere but on loopback and on a
    /// Unix socket.
    pub fn is_strong(&self) -> bool {
        self.header.as_bytes().trim_ascii().len() >= KEY_BYTES_MIN
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.header.as_bytes()).into())
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionKey(..)")
    }
}

/// What a server keeps of a key. Both sides of a comparison have the same length, so that the
/// time it takes says neither where two keys differ nor how long the right one is.
pub(crate) struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub(crate) fn admits(&self, offered: Option<&HeaderValue>) -> bool {
        let offered = offered.map_or(&b""[..], HeaderValue::as_bytes);
        let offered: [u8; 32] = Sha256::digest(offered).into();
        self.0.ct_eq(&offered).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_never_shows_in_debug_output() {
        let key = SessionKey::new("swordfish").unwrap();
        assert_eq!(format!("{key:?}"), "SessionKey(..)");
        assert!(!format!("{:?}", key.header()).contains("swordfish"));
    }

    #[test]
    fn only_the_very_key_is_admitted() {
        let digest = SessionKey::new("swordfish").unwrap().digest();
        for (offered, admitted) in [
            (Some("swordfish"), true),
            (Some("swordfis"), false),
            (Some("swordfishh"), false),
            (Some("Swordfish"), false),
            (Some(""), false),
            (None, false),
        ] {
            let header = offered.map(|text| HeaderValue::from_str(text).unwrap());
            assert_eq!(digest.admits(header.as_ref()), admitted, "{offered:?}");
        }
    }

    #[test]
    fn a_strong_key_has_32_bytes_without_the_blanks_around_it() {
        for (bytes, is_strong) in [(1, false), (31, false), (32, true), (4000, true)] {
            let text = format!(" {} ", "k".repeat(bytes));
            assert_eq!(
                SessionKey::new(&text).unwrap().is_strong(),
                is_strong,
                "{bytes}"
            );
        }
    }

    #[test]
    fn unusable_keys_are_refused() {
        assert_eq!(SessionKey::new(""), Err(InvalidKey::Empty));
        assert_eq!(SessionKey::new(" \t"), Err(InvalidKey::Empty));
        assert_eq!(SessionKey::new("a\nb"), Err(InvalidKey::NotAHeaderValue));
    }
}
