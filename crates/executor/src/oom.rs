//! Who goes first when memory runs out.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use zareba_terminal::Child;

/// Above the executor's own, which cannot be lowered without a privilege, and below 1000, so
/// that a program can still put itself before the others.
const SCORE: i32 = 500;

/// Makes the kernel choose this program, and what it starts, before the executor, which can then
/// say what happened (NS-17). One that is to go even earlier stays where it is.
pub(crate) fn goes_before_us(child: &Child) {
    // The number is the child's: nobody has waited for it yet.
    let path = format!("/proc/{}/oom_score_adj", child.pid());
    if let Err(error) = raise(&path) {
        tracing::debug!(%error, path, "a program does not go before us when memory runs out");
    }
}

fn raise(path: &str) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let mut digits = [0; 8];
    let length = file.read_at(&mut digits, 0)?;
    let score = str::from_utf8(&digits[..length]).unwrap_or_default();
    match score.trim().parse::<i32>() {
        Ok(score) if score >= SCORE => Ok(()),
        _ => file.write_all_at(SCORE.to_string().as_bytes(), 0),
    }
}
