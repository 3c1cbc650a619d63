//! The SHA-256 of a file's content.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
};

use sha2::{Digest as _, Sha256};
use zareba_protocol::python_repr::of_str as quoted;
use zareba_wire::files::{FileError, FileFailure};

use super::failure::io;

/// The largest file that is hashed; a sparse one can be endless.
const HASHED_BYTES_MAX: u64 = 4 << 30;

/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Hashes a file from its start and leaves it there. What is added meanwhile does not count.
pub(super) fn sha256(file: &mut File, size: u64, shown: &str) -> Result<String, FileError> {
    if size > HASHED_BYTES_MAX {
        let gibibytes = HASHED_BYTES_MAX >> 30;
        let message = format!(
            "{} is larger than {gibibytes} GiB and is not hashed",
            quoted(shown)
        );
        return Err(FileError::new(FileFailure::TooLarge, message));
    }
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut limited = file.take(size);
    loop {
        let length = limited
            .read(&mut piece)
            .map_err(|error| io(&error, shown))?;
        if length == 0 {
            break;
        }
        hash.update(piece.get(..length).unwrap_or_default());
    }
    file.rewind().map_err(|error| io(&error, shown))?;
    let digits = hash.finalize();
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}
