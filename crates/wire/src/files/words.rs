//! Ranges and expectations as the words of a query.

use super::{ByteRange, Expected};

/// Hexadecimal digits of a SHA-256.
const SHA256_DIGITS: usize = 64;

/// Longer than any version of ours.
const VERSION_BYTES_MAX: usize = 128;

impl ByteRange {
    /// What `FIRST-LAST`, `FIRST-` or `-COUNT` means, as behind `bytes=` in HTTP.
    pub fn from_words(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().ok(),
            false => None,
        };
        match (first, last) {
            ("", count) => Some(Self::Last(number(count)?)),
            (first, "") => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    pub(crate) fn to_words(self) -> String {
        match self {
            Self::From(first) => format!("{first}-"),
            Self::Between(first, last) => format!("{first}-{last}"),
            Self::Last(count) => format!("-{count}"),
        }
    }

    /// The first byte and how many there are, in a file of this size; `None` when there are none.
    pub fn within(self, size: u64) -> Option<(u64, u64)> {
        let (start, end) = match self {
            Self::From(first) => (first, size),
            Self::Between(first, last) => (first, last.saturating_add(1).min(size)),
            Self::Last(count) => (size.saturating_sub(count), size),
        };
        (start < end).then(|| (start, end - start))
    }
}

impl Expected {
    pub(crate) fn from_words(text: &str) -> Option<Self> {
        let is_plain = |text: &str| {
            (1..=VERSION_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match text.split_once(':') {
            None if text == "absent" => Some(Self::Absent),
            Some(("version", version)) if is_plain(version) => {
                Some(Self::Version(version.to_owned()))
            }
            Some(("sha256", digits))
                if digits.len() == SHA256_DIGITS
                    && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                Some(Self::Sha256(digits.to_ascii_lowercase()))
            }
            _ => None,
        }
    }

    pub(crate) fn to_words(&self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Version(version) => format!("version:{version}"),
            Self::Sha256(digits) => format!("sha256:{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_mean_what_http_says() {
        for (text, size, expected) in [
            ("0-0", 10, Some((0, 1))),
            ("2-4", 10, Some((2, 3))),
            ("2-", 10, Some((2, 8))),
            ("-3", 10, Some((7, 3))),
            ("-30", 10, Some((0, 10))),
            ("8-100", 10, Some((8, 2))),
            ("0-18446744073709551615", 10, Some((0, 10))),
            ("10-", 10, None),
            ("-0", 10, None),
            ("0-", 0, None),
        ] {
            let range = ByteRange::from_words(text).unwrap();
            assert_eq!(range.within(size), expected, "{text}");
            assert_eq!(ByteRange::from_words(&range.to_words()), Some(range));
        }
        for text in [
            "",
            "-",
            "1",
            "4-2",
            "a-b",
            "+1-2",
            "1-2-3",
            "1-2,4-5",
            "-18446744073709551616",
        ] {
            assert_eq!(ByteRange::from_words(text), None, "{text}");
        }
    }

    #[test]
    fn expectations_are_read_as_they_are_written() {
        for expected in [
            Expected::Absent,
            Expected::Version("1-2-3".to_owned()),
            Expected::Sha256("ab".repeat(32)),
        ] {
            assert_eq!(Expected::from_words(&expected.to_words()), Some(expected));
        }
        for text in [
            "",
            "absent:",
            "version:",
            "version:a b",
            "sha256:ab",
            "md5:aa",
        ] {
            assert_eq!(Expected::from_words(text), None, "{text}");
        }
    }
}
