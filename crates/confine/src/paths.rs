//! Landlock: which paths may be used for what, on top of what the mounts already decide.
//!
//! The kernel's rules only add, a parent's right is its children's, and what a kernel does not
//! know it does not restrict. So everything is asked for at the ABI that the running kernel has,
//! as a hard requirement, and what a newer kernel would have covered is reported as missing.
//! Before ABI 9 a socket that has a name can be connected to whatever the rules say (measured):
//! keep it out of the mounts.

mod enforce;
mod error;
mod report;
mod sys;

pub use enforce::{PathPolicy, Reach, Ruleset, TcpPorts};
pub use error::LandlockError;
pub use report::{Enforcement, LandlockReport, MissingRight};
