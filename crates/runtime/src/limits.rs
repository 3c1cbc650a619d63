//! What is said of a limit that a command has met, the same of every backend.

use zareba_protocol::{LimitHit, LimitKind};

/// The memory limit was reached, and the kernel killed so many processes for it. `limit` is the number
/// of bytes that the kernel enforces, where it is known.
pub fn out_of_memory(limit: Option<u64>, killed: u64) -> LimitHit {
    let limit = limit.map_or_else(String::new, bytes);
    let processes = match killed {
        1 => "a process was".to_owned(),
        number => format!("{number} processes were"),
    };
    LimitHit {
        kind: LimitKind::OomKilled,
        message: format!("the sandbox reached its memory limit{limit} and {processes} killed"),
    }
}

/// As many processes and threads as the limit allows were there, and so many more were refused.
pub fn too_many_processes(limit: Option<u64>, refused: u64) -> LimitHit {
    let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    LimitHit {
        kind: LimitKind::PidsLimit,
        message: format!(
            "the sandbox reached its limit{limit} processes and threads: {refused} more refused"
        ),
    }
}

/// ` of 2 GiB`, or ` of 1000 bytes` where no unit fits.
pub fn bytes(number: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fitting = units
        .iter()
        .find(|(_, shift)| number > 0 && number.trailing_zeros() >= *shift);
    match fitting {
        Some((unit, shift)) => format!(" of {} {unit}", number >> shift),
        None => format!(" of {number} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_with_its_number_where_that_is_known() {
        assert_eq!(
            out_of_memory(Some(96 << 20), 1).message,
            "the sandbox reached its memory limit of 96 MiB and a process was killed"
        );
        assert_eq!(
            out_of_memory(None, 3).message,
            "the sandbox reached its memory limit and 3 processes were killed"
        );
        assert_eq!(
            too_many_processes(Some(48), 2).message,
            "the sandbox reached its limit of 48 processes and threads: 2 more refused"
        );
    }

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        assert_eq!(bytes(2 << 30), " of 2 GiB");
        assert_eq!(bytes(1536 << 20), " of 1536 MiB");
        assert_eq!(bytes(1001), " of 1001 bytes");
        assert_eq!(bytes(0), " of 0 bytes");
    }
}
