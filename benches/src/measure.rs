//! The measurements, in the order of the table.

mod beside;
mod camel;
mod commands;
mod docker;
mod files;
mod memory;
mod native;
mod output;
mod program;
mod server;
mod shells;
mod start;
mod tools;

use crate::{setting::Setting, table::Row};

type Measure = fn(&Setting) -> anyhow::Result<Vec<Row>>;

/// Each with the name by which it can be asked for.
pub(crate) const MEASUREMENTS: &[(&str, Measure)] = &[
    ("commands", commands::measure),
    ("start", start::measure),
    ("memory", memory::measure),
    ("output", output::measure),
    ("files", files::measure),
    ("beside", beside::measure),
    ("shells", shells::measure),
    ("program", program::measure),
    ("native-create", native::create::measure),
    ("native-burst", native::burst::measure),
    ("native-warm", native::warm::measure),
    ("native-idle", native::idle::measure),
    ("native-exec", native::exec::measure),
    ("native-pause", native::pause::measure),
    ("native-destroy", native::destroy::measure),
    ("native-processors", native::processors::measure),
    ("docker-create", docker::create::measure),
    ("docker-exec", docker::exec::measure),
    ("docker-warm", docker::warm::measure),
    ("server-true", server::commands::measure),
    ("server-read", server::read::measure),
    ("log-events", server::events::measure),
    ("server-sessions", server::sessions::measure),
    ("server-processors", server::processors::measure),
    ("tools", tools::measure),
    ("camel", camel::measure),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    MEASUREMENTS.iter().map(|(name, _)| *name)
}
