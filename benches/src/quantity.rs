//! Measured amounts with their units, written as a person compares them: three digits that matter.

use std::{fmt, time::Duration};

/// An amount of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Seconds(f64),
    Bytes(f64),
    BytesPerSecond(f64),
    PerSecond(f64),
    /// How many times the first, as in a speed-up.
    Times(f64),
    /// How many there are.
    Count(f64),
}

impl Quantity {
    pub(crate) fn time(duration: Duration) -> Self {
        Self::Seconds(duration.as_secs_f64())
    }

    pub(crate) fn milliseconds(amount: f64) -> Self {
        Self::Seconds(amount / 1e3)
    }

    pub(crate) fn mebibytes(amount: f64) -> Self {
        Self::Bytes(amount * MEBIBYTE)
    }

    /// The bare number, for comparing quantities of one kind.
    pub(crate) fn amount(self) -> f64 {
        match self {
            Self::Seconds(amount)
            | Self::Bytes(amount)
            | Self::BytesPerSecond(amount)
            | Self::PerSecond(amount)
            | Self::Times(amount)
            | Self::Count(amount) => amount,
        }
    }
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match *self {
            Self::Count(amount) => return write!(formatter, "{amount:.0}"),
            // A difference can be less than nothing, and has the unit that it would have above.
            Self::Seconds(amount) if amount < 0.0 => {
                return write!(formatter, "-{}", Self::Seconds(-amount));
            }
            Self::Seconds(amount) if amount < 1e-3 => (amount * 1e6, " µs"),
            Self::Seconds(amount) if amount < 1.0 => (amount * 1e3, " ms"),
            Self::Seconds(amount) => (amount, " s"),
            Self::Bytes(amount) => (amount / MEBIBYTE, " MiB"),
            Self::BytesPerSecond(amount) => (amount / 1e6, " MB/s"),
            Self::PerSecond(amount) => (amount, "/s"),
            Self::Times(amount) => (amount, "×"),
        };
        let decimals = match amount {
            ..9.995 => 2,
            ..99.95 => 1,
            _ => 0,
        };
        write!(formatter, "{amount:.decimals$}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_three_digits_and_the_unit_that_fits() {
        let shown = [
            Quantity::time(Duration::from_nanos(54_321)),
            Quantity::time(Duration::from_micros(999)),
            Quantity::milliseconds(0.5),
            Quantity::milliseconds(20.0),
            Quantity::milliseconds(6600.0),
            Quantity::mebibytes(3.0),
            Quantity::Bytes(723.4 * MEBIBYTE),
            Quantity::BytesPerSecond(69.04e6),
            Quantity::PerSecond(20_000.4),
            Quantity::Times(9.999),
            Quantity::Count(16.0),
            Quantity::milliseconds(-1.5),
        ]
        .map(|quantity| quantity.to_string());
        let expected = [
            "54.3 µs",
            "999 µs",
            "500 µs",
            "20.0 ms",
            "6.60 s",
            "3.00 MiB",
            "723 MiB",
            "69.0 MB/s",
            "20000/s",
            "10.0×",
            "16",
            "-1.50 ms",
        ];
        assert_eq!(shown, expected);
    }
}
