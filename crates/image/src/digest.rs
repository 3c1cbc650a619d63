//! The name of content: its SHA-256.
//!
//! No other algorithm is taken. Registries use no other one, and a name that cannot be checked
//! is worth nothing.

use std::{
    fmt,
    io::{self, Read},
    str::FromStr,
};

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";
const HEX_CHARACTERS: usize = 64;

/// A SHA-256, written `sha256:` and 64 lowercase hexadecimal digits.
///
/// The only way to have one is to parse or to compute it, so its text is safe as a file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    hex: String,
}

/// A text that is not a digest we can check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a digest; write `sha256:` and 64 lowercase hexadecimal digits")]
pub struct ParseDigestError {
    text: String,
}

impl Digest {
    pub fn parse(text: &str) -> Result<Self, ParseDigestError> {
        text.strip_prefix(PREFIX)
            .filter(|hex| is_hex(hex) && hex.len() == HEX_CHARACTERS)
            .map(|hex| Self {
                hex: hex.to_owned(),
            })
            .ok_or_else(|| ParseDigestError {
                // What is shown of a hostile text stays short.
                text: text.escape_debug().take(100).collect(),
            })
    }

    /// The digest of bytes that are at hand.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The 64 digits without the name of the algorithm.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        Self::parse(text)
    }
}

/// Computes a digest piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    state: Sha256,
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    #[must_use]
    pub fn finish(self) -> Digest {
        let mut hex = String::with_capacity(HEX_CHARACTERS);
        for byte in self.state.finalize() {
            for nibble in [byte >> 4, byte & 0xf] {
                hex.extend(char::from_digit(u32::from(nibble), 16));
            }
        }
        Digest { hex }
    }
}

/// Passes bytes on, and knows their digest.
#[derive(Debug)]
pub(crate) struct HashingReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            hasher: Hasher::default(),
        }
    }

    /// The digest of everything that has passed.
    pub(crate) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_computed_written_and_parsed_alike() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(Digest::parse(EMPTY), Ok(Digest::of(b"")));
    }

    #[test]
    fn what_cannot_be_checked_or_is_no_file_name_is_refused() {
        let upper = EMPTY.to_uppercase().replace("SHA256", "sha256");
        let long = format!("{EMPTY}0");
        for text in [
            "",
            "sha256:",
            "sha256:../../etc/passwd",
            "sha512:e3b0",
            &EMPTY[7..],
            &upper,
            &long,
        ] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_that_pass_are_hashed() {
        let mut reader = HashingReader::new(&b"some bytes"[..]);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish(), Digest::of(b"some bytes"));
    }
}
