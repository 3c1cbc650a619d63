//! The file system that a confined program sees, put together from a policy.
//!
//! Trees that the sandbox's own user could not reach by name are prepared before it exists
//! (`prepare`); the rest is done by the sandbox's first process, alone in its mount namespace
//! (`assemble`), with the parts that no policy lists: `devices` and `processes`. What lies in memory
//! comes from one `store`.

mod assemble;
mod devices;
mod prepare;
mod processes;
mod store;

pub(crate) use assemble::enter;
pub(crate) use devices::{
    DEVICES, DEVICES_AT, look_ahead, ready_descriptor as ready_devices_descriptor,
};
pub(crate) use prepare::{Prepared, prepare};
pub(crate) use processes::{
    MASKED_DIRECTORIES, MASKED_FILES, PROCESSES_AT, SETTINGS, masked_here, seal_settings,
};
