//! Who goes first when memory runs out.

use std::fs;

use zareba_terminal::Child;

/// Above the executor's own, which cannot be lowered without a privilege, and below 1000, so
/// that a program can still put itself before the others.
const SCORE: i32 = 500;

/// Makes the kernel choose this program, and what it starts, before the executor, which can then
/// say what happened (NS-17). One that is to go even earlier stays where it is.
pub(crate) fn goes_before_us(child: &Child) {
    // The number is the child's: nobody has waited for it yet.
    let path = format!("/proc/{}/oom_score_adj", child.pid());
    let score = fs::read_to_string(&path)
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score >= SCORE) {
        return;
    }
    if let Err(error) = fs::write(&path, SCORE.to_string()) {
        tracing::debug!(%error, path, "a program does not go before us when memory runs out");
    }
}
