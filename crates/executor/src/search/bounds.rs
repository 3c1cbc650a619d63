//! The limits of a search, and the sentences that tell the agent which of them was hit.

use std::time::{Duration, Instant};

use super::walk::Walked;

/// Names that `glob` returns when the action names no limit: about what a model can use at once.
pub(super) const GLOB_LIMIT_DEFAULT: usize = 100;
/// Names that `glob` returns at the most.
pub(super) const GLOB_LIMIT_MAX: usize = 10_000;
/// Lines that `grep` returns when the action names no limit.
pub(super) const GREP_LIMIT_DEFAULT: usize = 200;
/// Lines that `grep` returns at the most; with the cut below this bounds the content.
pub(super) const GREP_LIMIT_MAX: usize = 5_000;
/// Characters kept of one matching line. Minified files have lines of megabytes.
pub(super) const LINE_CHARS_MAX: usize = 500;
/// Memory that one searching thread may use for one line; a longer line ends the file's search.
pub(super) const HEAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Memory that one compiled regular expression may use.
pub(super) const REGEX_BYTES_MAX: usize = 10 * 1024 * 1024;
/// How long one search may take. Network and process file systems can be endless.
pub(super) const SEARCH_TIME_MAX: Duration = Duration::from_secs(20);
/// Threads that one search uses at the most; several searches may run at once.
pub(super) const SEARCH_THREADS_MAX: usize = 4;

/// When a search must end and how much it may return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Results in the observation at the most.
    pub(super) limit: usize,
    /// The search ends here, whatever it has found.
    pub(super) deadline: Instant,
}

impl Bounds {
    /// Bounds that start now. A limit outside the allowed range is moved into it.
    pub(super) fn starting_now(asked: Option<u32>, default: usize, max: usize) -> Self {
        let limit = asked.map_or(default, |asked| usize::try_from(asked).unwrap_or(max));
        Self {
            limit: limit.clamp(1, max),
            deadline: Instant::now() + SEARCH_TIME_MAX,
        }
    }

    /// The time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// What a search could not do; each adds one sentence to the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shortfall {
    /// More was found than the limit allows.
    pub(super) limit_hit: bool,
    /// The deadline came first.
    pub(super) time_over: bool,
    /// Files and directories that could not be read, or whose lines are too long.
    pub(super) unreadable: u64,
}

impl Shortfall {
    /// Adds what the walk could not do.
    pub(super) fn add(&mut self, walked: Walked) {
        self.time_over |= walked.time_over;
        self.unreadable += walked.unreadable;
    }

    /// The results are not all there is.
    pub(super) fn is_truncated(&self) -> bool {
        self.limit_hit || self.time_over
    }

    /// One sentence in parentheses per bound that was hit. `what` is "files" or "matches".
    pub(super) fn sentences(&self, limit: usize, what: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.limit_hit {
            sentences.push(format!(
                "(Truncated: only the first {limit} {what} are shown. Narrow the pattern or the path, or raise the limit.)"
            ));
        }
        if self.time_over {
            sentences.push(format!(
                "(The search was stopped after {} seconds; {what} may be missing. Narrow the path.)",
                SEARCH_TIME_MAX.as_secs()
            ));
        }
        if self.unreadable > 0 {
            let (noun, verb) = if self.unreadable == 1 {
                ("entry", "was")
            } else {
                ("entries", "were")
            };
            sentences.push(format!(
                "({} {noun} {verb} not searched to the end: not readable, or a line longer than {} MiB.)",
                self.unreadable,
                HEAP_BYTES_MAX / (1024 * 1024)
            ));
        }
        sentences
    }
}
