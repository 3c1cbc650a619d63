//! Sizes and shares of processors.

use std::fmt;

use zareba_protocol::amounts;

use super::shape::{Mismatch, Setting, Shape};
use super::text::quote;
use crate::value::Value;

/// A number of bytes: `2147483648`, `"2G"`, `"2Gi"` and `"2GiB"` are the same.
///
/// Units are powers of 1024, as everything that is limited here is counted in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

impl Size {
    /// So many bytes.
    pub(crate) const fn of(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many times 1024 × 1024 bytes.
    pub(crate) const fn mebibytes(count: u64) -> Self {
        Self(count * 1024 * 1024)
    }

    /// So many times 1024 × 1024 × 1024 bytes.
    pub(crate) const fn gibibytes(count: u64) -> Self {
        Self::mebibytes(count * 1024)
    }

    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        amounts::parse_bytes(text).map(Self)
    }
}

/// In the largest unit that leaves no fraction.
impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&amounts::show_bytes(self.0))
    }
}

impl Setting for Size {
    const SHAPE: Shape = Shape::Size;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        let (size, found) = match value {
            Value::Integer(bytes) => (u64::try_from(*bytes).ok().map(Self), bytes.to_string()),
            Value::Text(text) => (Self::parse(text), quote(text)),
            other => return Err(Mismatch::wrong_type(Self::SHAPE, other)),
        };
        size.ok_or(Mismatch::Type {
            expected: Self::SHAPE,
            found,
        })
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }
}

/// How many processors may be busy at once, in thousandths of one: `2`, or `0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Processors {
    millis: u32,
}

impl Processors {
    /// Whole ones.
    pub(crate) const fn whole(count: u32) -> Self {
        Self {
            millis: count * 1000,
        }
    }

    /// Thousandths of one.
    pub fn millis(self) -> u32 {
        self.millis
    }
}

impl Setting for Processors {
    const SHAPE: Shape = Shape::Number;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        let millis = match value {
            Value::Integer(count) => u32::try_from(*count)
                .ok()
                .and_then(|count| count.checked_mul(1000)),
            Value::Float(count) => amounts::thousandths(*count),
            other => return Err(Mismatch::wrong_type(Self::SHAPE, other)),
        };
        let millis = millis.ok_or_else(|| Mismatch::Type {
            expected: Self::SHAPE,
            found: value.to_string(),
        })?;
        Ok(Self { millis })
    }

    fn write(&self) -> Value {
        match self.millis % 1000 {
            0 => Value::Integer(i64::from(self.millis / 1000)),
            _ => Value::Float(f64::from(self.millis) / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<u64> {
        Size::parse(text).map(Size::bytes)
    }

    #[test]
    fn units_are_powers_of_1024_however_they_are_spelled() {
        for text in [
            "2147483648",
            "2G",
            "2Gi",
            "2GiB",
            "2 GiB",
            "2048M",
            " 2097152K ",
        ] {
            assert_eq!(bytes(text), Some(2 << 30), "{text}");
        }
        assert_eq!((bytes("0"), bytes("7B")), (Some(0), Some(7)));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        let too_large = "9223372036854775808";
        for text in [
            "", "G", "-1", "1.5G", "2GB", "2g", "2X", "2iB", "8388608T", too_large,
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn a_size_reads_back_as_it_is_written() {
        for (size, text) in [
            (Size::gibibytes(2), "2GiB"),
            (Size::mebibytes(1536), "1536MiB"),
            (Size(1000), "1000"),
            (Size(0), "0"),
        ] {
            assert_eq!(size.to_string(), text);
            assert_eq!(Size::parse(text), Some(size));
        }
    }

    #[test]
    fn processors_may_have_fractions() {
        let read = |value| Processors::read(&value).map(Processors::millis).ok();
        assert_eq!(read(Value::Integer(2)), Some(2000));
        assert_eq!(read(Value::Float(0.25)), Some(250));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(read(Value::Float(wrong)), None, "{wrong}");
        }
        assert_eq!(read(Value::Integer(i64::MAX)), None);
    }
}
