//! Saying that there are no walls, once.

use std::sync::Once;

/// What a person must know before a model's commands run by `cli` or `local`.
pub const NOT_ISOLATED: &str = "the runtimes `cli` and `local` do not isolate: commands run with \
    your rights, on your files and in your network";

static TOLD: Once = Once::new();

/// Tells it through the log, the first time in this process.
pub(crate) fn tell_once() {
    TOLD.call_once(|| tracing::warn!("{NOT_ISOLATED}"));
}
