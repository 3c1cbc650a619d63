//! Counts before and after: what a run of the tests leaves on the machine fails that run.
//!
//! The command runs below a process that adopts orphans, so every process it starts stays within
//! sight however often it forks, changes its session or clears its environment, and processes of
//! somebody else on the same machine are never taken for ours. Linux only.

mod processes;
mod run;
mod traces;

pub(crate) use run::run;
