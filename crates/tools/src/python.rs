//! Functions of Python: loaded by entrypoint, run by a worker process in a sandbox.
//!
//! [`PythonHost`] is what others see. `process` is one life of the worker, `message` is what goes
//! to and fro, and the worker itself is in `python/worker/`, and needs nothing but Python.

mod entrypoint;
mod host;
mod load;
mod message;
mod process;

pub use entrypoint::{Entrypoint, InvalidEntrypoint};
pub use host::{PythonHost, PythonOptions};
pub use load::{LoadFailure, Loaded};
