//! The runtimes `cli` and `local` against the conformance suite, and what only they promise.
//!
//! `local` needs the `zareba` program: the one that `ZAREBA_BIN` names, or the one that lies
//! where cargo puts it. A missing one is a failure.

mod cli;
mod fixture;
mod kept;
mod local;
mod warm;
