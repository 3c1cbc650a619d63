//! Lengths of time as people type them.

use std::time::Duration;

/// A number with a unit: `90s`, `10m`, `2h` or `1d`.
pub(super) fn span(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number = text.get(..text.len() - 1)?.parse::<u64>().ok()?;
    number.checked_mul(unit).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_number_and_a_unit() {
        let seconds = |text| span(text).map(|span| span.as_secs());
        assert_eq!(
            ["90s", "10m", "2h", "1d"].map(seconds),
            [Some(90), Some(600), Some(7200), Some(86_400)]
        );
        for wrong in ["", "h", "10", "-5m", "1.5h", "10ü", "99999999999999999999s"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }
}
