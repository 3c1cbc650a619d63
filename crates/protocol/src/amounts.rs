//! How much a sandbox may have: how sizes are written, and what is too little or too much.
//!
//! The same rules hold for settings, flags and requests.

/// Bytes of memory without which no shell runs.
pub const MEMORY_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// Bytes that changes to files take at least.
pub const DISK_BYTES_MIN: u64 = 1024 * 1024;
/// Processes and threads of the smallest sandbox.
pub const PIDS_MIN: u32 = 16;
/// The smallest share of a processor that the kernel hands out, in thousandths.
pub const CPU_MILLIS_MIN: u32 = 10;
/// More thousandths of a processor than any machine has.
pub const CPU_MILLIS_MAX: u32 = 1_024_000;

/// Units and the power of two that each stands for, the largest first.
const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

/// Reads a number of bytes: `2147483648`, `2G`, `2Gi` and `2GiB` are the same.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim_start() {
        "" | "B" => 0,
        unit => {
            let letter = unit.strip_suffix("iB").or(unit.strip_suffix('i'));
            let letter = letter.unwrap_or(unit);
            let known = UNITS.iter().find(|(known, _)| *known == letter);
            known.map(|(_, shift)| *shift)?
        }
    };
    let number: u64 = number.parse().ok()?;
    let bytes = number.checked_mul(1 << shift);
    bytes.filter(|bytes| i64::try_from(*bytes).is_ok())
}

/// Writes a number of bytes in the largest unit that leaves no fraction.
pub fn show_bytes(bytes: u64) -> String {
    let fitting = UNITS
        .iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match fitting {
        Some((unit, shift)) => format!("{}{unit}iB", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Thousandths of a number of processors; none for what is no such number at all.
pub fn thousandths(count: f64) -> Option<u32> {
    let millis = (count * 1000.0).round();
    // Inside the range the conversion loses nothing.
    (0.0..=f64::from(u32::MAX))
        .contains(&millis)
        .then_some(millis as u32)
}
