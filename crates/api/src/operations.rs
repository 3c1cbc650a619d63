//! The table of operations, one file per group.

pub mod actions;
pub mod events;
pub mod files;
pub mod keys;
pub mod ports;
pub mod programs;
pub mod service;
pub mod sessions;
pub mod terminals;
pub mod tools;

use crate::Operation;

/// Every operation, group by group.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    [
        service::ALL,
        sessions::ALL,
        actions::ALL,
        tools::ALL,
        events::ALL,
        files::ALL,
        terminals::ALL,
        programs::ALL,
        ports::ALL,
        keys::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}
