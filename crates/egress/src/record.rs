//! Every decision is written down (EG-7): one line each in a log of bounded size, and sums in a
//! small file that is replaced as a whole.
//!
//! Names, addresses, ports and byte counts are kept. Paths, headers and contents never are.

mod counters;
mod decision;
mod log;
mod recorder;

pub use counters::{Counters, HostCounters};
pub use decision::{Decision, DecisionKind, End, Reason, VerdictKind};
pub(crate) use recorder::Recorder;
